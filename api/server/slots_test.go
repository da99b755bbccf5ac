package server_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
)

// A cap for one class is a limit that matches the class.
func TestSlotsOfAClass(t *testing.T) {
	t.Parallel()
	t.Run("S3-12", func(t *testing.T) {
		t.Parallel()
		node, _, address := start(t, nil)
		write(t, node, described)
		conn := dial(t, address)
		for i := range 3 {
			answer := ask(t, conn, &quorleasev1.AcquireRequest{
				LeaseId: fmt.Sprintf("%032d", i+1), Track: true, Class: "batch", Attributes: pairs("team=x"),
			})
			if granted := answer.GetLease() != nil; granted != (i < 2) {
				t.Errorf("batch %d: %v", i, answer)
			} else if !granted && answer.GetDenials()[0].GetReason() != quorleasev1.Reason_CONCURRENCY {
				t.Errorf("batch %d is refused by %v", i, answer.GetDenials())
			}
		}
		live := ask(t, conn, &quorleasev1.AcquireRequest{Class: "live", Attributes: pairs("team=x")})
		if live.GetLease() == nil {
			t.Errorf("another class: %v", live)
		}
	})
}

// slotItem asks for a slot of batch-slots.
func slotItem(seq uint64) *quorleasev1.RequestItem {
	return &quorleasev1.RequestItem{Seq: seq, Operation: &quorleasev1.RequestItem_Acquire{
		Acquire: &quorleasev1.AcquireRequest{
			LeaseId: fmt.Sprintf("%032d", seq), Track: true, Class: "batch", Attributes: pairs("region=eu"),
		},
	}}
}

func slotsInUse(t *testing.T, conn *grpc.ClientConn) int64 {
	t.Helper()
	state, err := quorleasev1.NewLimitsClient(conn).Inspect(patient(t),
		&quorleasev1.LimitsInspectRequest{Limit: "batch-slots"})
	if err != nil {
		t.Fatal(err)
	}
	return state.GetBuckets()[0].GetOpen()
}

// Slots come back when the session that took them has ended, after a grace, unless
// the client comes back.
func TestSlotsGoWithTheSession(t *testing.T) {
	t.Parallel()
	node, _, address := start(t, func(c *server.Config) { c.SessionGrace = 5 * time.Second })
	write(t, node, described)
	conn := dial(t, address)
	begin := func(connection uint64) (sessionClient, context.CancelFunc) {
		ctx, cancel := context.WithCancel(patient(t))
		h := hello()
		h.Connection = connection
		return open(t, ctx, address, h), cancel
	}
	ended := func(connection uint64) bool {
		end := node.Last().GetEndSession()
		return end != nil && !end.GetResumed() && end.GetConnection() == connection
	}
	// tick lets the state machine see that time has passed.
	tick := func(d time.Duration) {
		node.Advance(d)
		node.Apply(&logv1.Operation{Kind: &logv1.Operation_EndSession{EndSession: &logv1.EndSession{
			Session: []byte("another session!"),
		}}})
	}
	stream, cancel := begin(1)
	send(t, stream, slotItem(1), slotItem(2))
	receive(t, stream, 2)
	if got := slotsInUse(t, conn); got != 2 {
		t.Fatalf("%d slots are in use, want 2", got)
	}
	cancel()
	eventually(t, func() bool { return ended(1) })
	tick(4 * time.Second)
	if got := slotsInUse(t, conn); got != 2 {
		t.Errorf("within the grace %d slots are in use, want 2", got)
	}
	stream, cancel = begin(2)
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return node.Last().GetEndSession().GetResumed() })
	tick(10 * time.Second)
	if got := slotsInUse(t, conn); got != 2 {
		t.Errorf("the session is back: %d slots are in use, want 2", got)
	}
	cancel()
	eventually(t, func() bool { return ended(2) })
	tick(5 * time.Second)
	if got := slotsInUse(t, conn); got != 0 {
		t.Errorf("after the grace %d slots are in use", got)
	}
}

// A node that stops ends no session: its clients go to other nodes.
func TestADrainingNodeEndsNoSession(t *testing.T) {
	t.Parallel()
	node, s, address := start(t, nil)
	write(t, node, described)
	stream := open(t, patient(t), address, hello())
	send(t, stream, slotItem(1))
	receive(t, stream, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if op := node.Last(); op.GetEndSession() != nil {
		t.Errorf("the node said %v", op)
	}
}
