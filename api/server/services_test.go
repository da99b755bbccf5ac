package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/cluster"
)

func TestAcquireAndSettle(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	conn := dial(t, address)
	configure(t, conn, "a", nil)
	admission := quorleasev1.NewAdmissionClient(conn)

	granted, err := admission.Acquire(patient(t), &quorleasev1.AcquireRequest{
		LeaseId: leaseID, Track: true, Charges: charge("a", 6),
	})
	if err != nil {
		t.Fatal(err)
	}
	if granted.GetDecision() != quorleasev1.Decision_GRANTED || granted.GetLease().GetId() != leaseID ||
		granted.GetLease().GetTtl().AsDuration() != 5*time.Second || !granted.GetLease().GetTracked() ||
		granted.GetRemaining()[0].GetTokens() != 4 || granted.GetSource() != quorleasev1.Source_CONSENSUS {
		t.Errorf("granted: %v", granted)
	}
	denied, err := admission.Acquire(patient(t), &quorleasev1.AcquireRequest{Charges: charge("a", 5)})
	if err != nil {
		t.Fatal(err)
	}
	d := denied.GetDenials()[0]
	if denied.GetDecision() != quorleasev1.Decision_DENIED || d.GetReason() != quorleasev1.Reason_RATE ||
		d.GetRetryAfter().AsDuration() != 6*time.Second || d.GetNever() || denied.GetLease() != nil {
		t.Errorf("denied: %v", denied)
	}
	peeked, err := admission.Peek(patient(t), &quorleasev1.PeekRequest{Charges: charge("a", 5)})
	if err != nil || peeked.GetDecision() != quorleasev1.Decision_DENIED {
		t.Errorf("peek: %v, %v", peeked, err)
	}
	t.Run("A05_larger_than_the_burst_is_never", func(t *testing.T) {
		never, err := admission.Acquire(patient(t), &quorleasev1.AcquireRequest{Charges: charge("a", 11)})
		if err != nil {
			t.Fatal(err)
		}
		d := never.GetDenials()[0]
		if d.GetReason() != quorleasev1.Reason_EXCEEDS_BURST || !d.GetNever() || d.GetRetryAfter() != nil {
			t.Errorf("denial %v", d)
		}
	})
	node.Advance(time.Second)
	settled, err := admission.Settle(patient(t), &quorleasev1.SettleRequest{
		LeaseId: leaseID, Used: []*quorleasev1.Usage{{Dimension: "requests", Used: 2}},
	})
	if err != nil || settled.GetState() != quorleasev1.LeaseState_SETTLED ||
		settled.GetSettlements()[0].GetRefunded() != 4 || settled.GetRepeatedRequest() {
		t.Errorf("settled: %v, %v", settled, err)
	}
	again, err := admission.Settle(patient(t), &quorleasev1.SettleRequest{
		LeaseId: leaseID, Used: []*quorleasev1.Usage{{Dimension: "requests", Used: 2}},
	})
	if err != nil || !again.GetRepeatedRequest() || again.GetSettlements()[0].GetRefunded() != 4 {
		t.Errorf("settled again: %v, %v", again, err)
	}
	_, err = admission.Settle(patient(t), &quorleasev1.SettleRequest{LeaseId: leaseID})
	if e := server.ErrorOf(err); e.Cause.Reason != "LEASE_CONFLICT" || e.Cause.Code != codes.AlreadyExists {
		t.Errorf("settled otherwise: %v", err)
	}
}

func TestReleaseAndRenew(t *testing.T) {
	t.Parallel()
	_, _, address := start(t, nil)
	conn := dial(t, address)
	configure(t, conn, "a", nil)
	admission := quorleasev1.NewAdmissionClient(conn)
	_, err := admission.Acquire(patient(t), &quorleasev1.AcquireRequest{
		LeaseId: leaseID, Track: true, Charges: charge("a", 6),
	})
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := admission.Renew(patient(t), &quorleasev1.RenewRequest{
		LeaseId: leaseID, Ttl: durationpb.New(30 * time.Second), Sequence: 1,
	})
	if err != nil || renewed.GetTtl().AsDuration() != 30*time.Second {
		t.Errorf("renewed: %v, %v", renewed, err)
	}
	released, err := admission.Release(patient(t), &quorleasev1.ReleaseRequest{LeaseId: leaseID})
	if err != nil || released.GetState() != quorleasev1.LeaseState_RELEASED {
		t.Errorf("released: %v, %v", released, err)
	}
	peeked, err := admission.Peek(patient(t), &quorleasev1.PeekRequest{Charges: charge("a", 10)})
	if err != nil || peeked.GetDecision() != quorleasev1.Decision_GRANTED {
		t.Errorf("after the release: %v, %v", peeked, err)
	}
}

// What a node ends with is what the caller gets.
func TestErrorsOfTheNode(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	conn := dial(t, address)
	for sentinel, reason := range sentinels {
		node.Fail(fmt.Errorf("wrapped: %w", sentinel))
		_, err := quorleasev1.NewAdmissionClient(conn).Acquire(patient(t),
			&quorleasev1.AcquireRequest{Charges: charge("a", 1)})
		if e := server.ErrorOf(err); e == nil || e.Cause.Reason != reason {
			t.Errorf("%v: got %v", sentinel, err)
		}
	}
	node.Fail(cluster.ErrNoQuorum)
	status, err := quorleasev1.NewClusterClient(conn).Status(patient(t), &quorleasev1.ClusterStatusRequest{})
	if err != nil || status.GetLeader() != "n1" || len(status.GetNodes()) != 2 {
		t.Errorf("status without a quorum: %v, %v", status, err)
	}
	limits := quorleasev1.NewLimitsClient(conn)
	if _, err := limits.List(patient(t), &quorleasev1.LimitsListRequest{Stale: true}); err != nil {
		t.Errorf("stale list without a quorum: %v", err)
	}
	_, err = limits.List(patient(t), &quorleasev1.LimitsListRequest{})
	if server.ErrorOf(err).Cause.Reason != "NO_QUORUM" {
		t.Errorf("list without a quorum: %v", err)
	}
}

// G8: a call without a deadline has one all the same, and one with a deadline
// returns by it, even if the node never answers.
func TestG8DeadlineWhenTheNodeHangs(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	node.Hold()
	conn := dial(t, address)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := quorleasev1.NewAdmissionClient(conn).Acquire(ctx, &quorleasev1.AcquireRequest{Charges: charge("a", 1)})
	if e := server.ErrorOf(err); e.Cause.Code != codes.DeadlineExceeded || !e.Cause.MayHaveHappened {
		t.Errorf("got %v", err)
	}
	began := time.Now()
	_, err = quorleasev1.NewAdmissionClient(conn).Acquire(context.Background(),
		&quorleasev1.AcquireRequest{Charges: charge("a", 1)})
	if status.Code(err) != codes.DeadlineExceeded || time.Since(began) > 10*time.Second {
		t.Errorf("without a deadline: %v after %v", err, time.Since(began))
	}
	if _, held, _ := node.Counts(); held != 0 {
		t.Errorf("%d operations wait for nobody", held)
	}
}

// A bug costs one call, says a number, and shows nothing of its inside.
func TestPanicIsInternal(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	node, _, address := start(t, func(c *server.Config) {
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
	})
	conn := dial(t, address)
	node.Panic("secret inside")
	_, err := quorleasev1.NewAdmissionClient(conn).Acquire(patient(t),
		&quorleasev1.AcquireRequest{Charges: charge("a", 1)})
	e := server.ErrorOf(err)
	if e.Cause.Code != codes.Internal || len(e.Correlation) != 16 || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(log.String(), e.Correlation) || !strings.Contains(log.String(), "secret inside") {
		t.Errorf("the log does not have %s:\n%s", e.Correlation, log.String())
	}
	_, err = quorleasev1.NewAdmissionClient(conn).Acquire(patient(t), &quorleasev1.AcquireRequest{Charges: charge("a", 1)})
	if server.ErrorOf(err).Cause.Reason != "LIMIT_NOT_FOUND" {
		t.Errorf("afterwards: %v", err)
	}
}

// rawCodec sends bytes as they are.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if raw, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// A22: what is no text is refused as the caller's mistake, by name, and nothing
// is created.
func TestUndecodableRequests(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	conn := dial(t, address, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2("proto")})))
	for name, test := range map[string]struct {
		method string
		bytes  []byte
		want   string
	}{
		// A charge (field 7) whose key (field 2) is the byte 0xff.
		"A22_invalid_UTF-8": {
			"Admission/Acquire", []byte{7<<3 | 2, 3, 2<<3 | 2, 1, 0xff}, `charges[0].key: "\xff" is not valid UTF-8`,
		},
		// A limit's name (field 1) that the decoder itself refuses.
		"A22_invalid_UTF-8_elsewhere": {"Limits/Inspect", []byte{1<<3 | 2, 1, 0xff}, "limit: is not valid UTF-8"},
		"cut off": {
			"Admission/Acquire", []byte{7<<3 | 2, 30, 1}, "bad request: the request can't be decoded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := conn.Invoke(patient(t), "/quorlease.v1."+test.method, test.bytes, &quorleasev1.AcquireResponse{})
			if e := server.ErrorOf(err); e.Cause.Reason != "BAD_FIELD" || !strings.Contains(e.Message, test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if submitted, _, _ := node.Counts(); submitted != 0 {
		t.Errorf("%d operations reached the node", submitted)
	}
}

// What changes the members says what came of it, and is refused before the node is
// asked where a name or an address is none.
func TestMembersAreChanged(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, nil)
	cluster1 := quorleasev1.NewClusterClient(dial(t, address))
	added, err := cluster1.Add(patient(t), &quorleasev1.ClusterAddRequest{Id: "n3", Peer: "h:7201"})
	if err != nil || !added.GetChanged() {
		t.Errorf("added: %v, %v", added, err)
	}
	if removed, err := cluster1.Remove(patient(t), &quorleasev1.ClusterRemoveRequest{Id: "n2"}); err != nil ||
		!removed.GetChanged() {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if promoted, err := cluster1.Promote(patient(t), &quorleasev1.ClusterPromoteRequest{Id: "n1"}); err != nil ||
		promoted.GetChanged() {
		t.Errorf("promoted: %v, %v", promoted, err)
	}
	if demoted, err := cluster1.Demote(patient(t), &quorleasev1.ClusterDemoteRequest{Id: "n2"}); err != nil ||
		!demoted.GetChanged() {
		t.Errorf("demoted: %v, %v", demoted, err)
	}
	led, err := cluster1.TransferLeadership(patient(t), &quorleasev1.ClusterTransferLeadershipRequest{})
	if err != nil || !led.GetChanged() || led.GetLeader() != "n1" {
		t.Errorf("transferred: %v, %v", led, err)
	}
	node.Fail(fmt.Errorf("%w: n2 is 300 entries behind", cluster.ErrNotReady))
	_, err = cluster1.Promote(patient(t), &quorleasev1.ClusterPromoteRequest{Id: "n2"})
	if e := server.ErrorOf(err); e.Cause.Reason != "NODE_NOT_READY" || !strings.Contains(e.Message, "300 entries") {
		t.Errorf("not ready: %v", err)
	}
	for field, bad := range map[string]*quorleasev1.ClusterAddRequest{
		"id": {Id: "N3", Peer: "h:1"}, "peer": {Id: "n3", Peer: "0.0.0.0:1"},
	} {
		_, err := cluster1.Add(patient(t), bad)
		if e := server.ErrorOf(err); len(e.Fields) != 1 || e.Fields[0].Name != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
