package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// binary is built once for all tests of the package.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "quorlease-faults-")
	if err == nil {
		binary, err = BuildBinary(context.Background(), dir)
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		println(err.Error())
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// startCluster starts three nodes and waits until all are healthy.
func startCluster(t *testing.T, wrap func(int) []string, args ...string) *Nodes {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "nodes.log"))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := StartNodes(NodesConfig{Binary: binary, Dir: t.TempDir(), Count: 3, Wrap: wrap, Args: args, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nodes.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			printed, _ := os.ReadFile(log.Name())
			t.Logf("the nodes said:\n%s", printed)
		}
		_ = log.Close()
	})
	if err := nodes.Healthy(t.Context()); err != nil {
		t.Fatal(err)
	}
	return nodes
}

// exactLimit is a bucket of 20 that never refills.
func exactLimit(t *testing.T, nodes *Nodes) {
	t.Helper()
	burst := int64(20)
	err := ApplyLimit(t.Context(), nodes.GRPC(0), &quorleasev1.Limit{
		Name: "exact", Exact: true,
		Dimensions: []*quorleasev1.Dimension{{
			Name: "requests", Burst: &burst, MaxOpen: &burst,
			Rate: &quorleasev1.Rate{Amount: 0, Interval: durationpb.New(time.Minute)},
		}},
		Lease: durationpb.New(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// acquireOne asks node i for one token of the exact limit, as often as it
// takes to be answered, with one lease id.
func acquireOne(ctx context.Context, nodes *Nodes, i int) (*quorleasev1.AcquireResponse, error) {
	conn, err := Dial(nodes.GRPC(i))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	request := &quorleasev1.AcquireRequest{
		LeaseId: NewID(), Track: true, Client: "test",
		Charges: []*quorleasev1.Charge{{Limit: "exact", Dimension: "requests", Amount: 1}},
	}
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		response, err := quorleasev1.NewAdmissionClient(conn).Acquire(attempt, request)
		cancel()
		if err == nil || !MayHaveHappened(err) || ctx.Err() != nil {
			return response, err
		}
		_ = pause(ctx, 20*time.Millisecond)
	}
}

// level is the exact limit's level by a fresh read.
func level(t *testing.T, nodes *Nodes, i int) int64 {
	t.Helper()
	conn, err := Dial(nodes.GRPC(i))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for {
		response, err := quorleasev1.NewLimitsClient(conn).Inspect(t.Context(),
			&quorleasev1.LimitsInspectRequest{Limit: "exact"})
		if err == nil {
			return response.GetBuckets()[0].GetLevel()
		}
		if status.Code(err) != codes.Unavailable || pause(t.Context(), 50*time.Millisecond) != nil {
			t.Fatal(err)
		}
	}
}

func TestExactlyTwentyOfManyAtOnce(t *testing.T) {
	t.Run("A14_simultaneous_acquires_through_three_nodes_are_exact", func(t *testing.T) {
		nodes := startCluster(t, nil)
		exactLimit(t, nodes)
		granted := acquireMany(t, nodes, 120)
		if granted != 20 {
			t.Fatalf("120 acquires of 1 from a burst of 20: %d granted, want 20", granted)
		}
		if got := level(t, nodes, 1); got != 0 {
			t.Fatalf("level after 20 grants: %d, want 0", got)
		}
	})
}

// acquireMany sends count acquires at once, spread over the nodes.
func acquireMany(t *testing.T, nodes *Nodes, count int) int64 {
	t.Helper()
	var granted atomic.Int64
	var joined sync.WaitGroup
	for c := range count {
		joined.Go(func() {
			response, err := acquireOne(t.Context(), nodes, c%nodes.Len())
			if err != nil {
				t.Errorf("acquire %d: %v", c, err)
			}
			if response.GetDecision() == quorleasev1.Decision_GRANTED {
				granted.Add(1)
			}
		})
	}
	joined.Wait()
	return granted.Load()
}

func TestFrozenLeaderGrantsNothingMore(t *testing.T) {
	t.Run("G1_a_leader_frozen_past_an_election_and_woken", func(t *testing.T) {
		nodes := startCluster(t, nil)
		exactLimit(t, nodes)
		old, err := nodes.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := nodes.Signal(old, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		other := (old + 1) % nodes.Len()
		waitForOtherLeader(t, nodes, other, old)
		for range 20 {
			response, err := acquireOne(t.Context(), nodes, other)
			if err != nil || response.GetDecision() != quorleasev1.Decision_GRANTED {
				t.Fatalf("acquire at the new leader's side: %v, %v", response, err)
			}
		}
		if err := nodes.Signal(old, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			response, err := acquireOne(t.Context(), nodes, old)
			if err != nil || response.GetDecision() != quorleasev1.Decision_DENIED {
				t.Fatalf("acquire at the woken leader: %v, %v; want DENIED", response, err)
			}
		}
	})
}

// waitForOtherLeader waits until node i follows somebody else than old.
func waitForOtherLeader(t *testing.T, nodes *Nodes, i, old int) {
	t.Helper()
	for {
		if leader, ok := nodes.leaderAt(t.Context(), i); ok && leader != old {
			return
		}
		if err := pause(t.Context(), 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSettleTwiceAcrossALeaderKill(t *testing.T) {
	t.Run("G4_one_effect_and_the_same_answer", func(t *testing.T) {
		nodes := startCluster(t, nil)
		exactLimit(t, nodes)
		leader, err := nodes.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := (leader + 1) % nodes.Len()
		id := takeLease(t, nodes, other, 10)
		first := settle(t, nodes, leader, id, 4)
		if err := nodes.Signal(leader, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		second := settle(t, nodes, other, id, 4)
		if !second.GetRepeatedRequest() || first.GetRepeatedRequest() {
			t.Errorf("repeated: first %v, second %v", first.GetRepeatedRequest(), second.GetRepeatedRequest())
		}
		second.RepeatedRequest = first.GetRepeatedRequest()
		if !proto.Equal(first, second) {
			t.Errorf("answers differ:\nfirst  %v\nsecond %v", first, second)
		}
		_, err = trySettle(t, nodes, other, id, 5)
		if status.Code(err) != codes.AlreadyExists {
			t.Errorf("settle with other content: %v, want ALREADY_EXISTS", err)
		}
		if got := level(t, nodes, other); got != 16 {
			t.Errorf("level after granting 10 and using 4 of 20: %d, want 16", got)
		}
	})
}

func takeLease(t *testing.T, nodes *Nodes, i int, amount int64) string {
	t.Helper()
	conn, err := Dial(nodes.GRPC(i))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	id := NewID()
	response, err := quorleasev1.NewAdmissionClient(conn).Acquire(t.Context(), &quorleasev1.AcquireRequest{
		LeaseId: id, Track: true, Client: "test",
		Charges: []*quorleasev1.Charge{{Limit: "exact", Dimension: "requests", Amount: amount}},
	})
	if err != nil || response.GetDecision() != quorleasev1.Decision_GRANTED {
		t.Fatalf("acquire %d: %v, %v", amount, response, err)
	}
	return id
}

func trySettle(t *testing.T, nodes *Nodes, i int, id string, used int64) (*quorleasev1.SettleResponse, error) {
	t.Helper()
	conn, err := Dial(nodes.GRPC(i))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for {
		response, err := quorleasev1.NewAdmissionClient(conn).Settle(t.Context(), &quorleasev1.SettleRequest{
			LeaseId: id, Used: []*quorleasev1.Usage{{Dimension: "requests", Used: used}},
		})
		if err == nil || !MayHaveHappened(err) || pause(t.Context(), 50*time.Millisecond) != nil {
			return response, err
		}
	}
}

func settle(t *testing.T, nodes *Nodes, i int, id string, used int64) *quorleasev1.SettleResponse {
	t.Helper()
	response, err := trySettle(t, nodes, i, id, used)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func TestFollowerSyncsAndAllKilledLoseNothing(t *testing.T) {
	t.Run("R15_every_acknowledged_acquire_is_on_disk", func(t *testing.T) {
		strace, err := exec.LookPath("strace")
		if err != nil {
			t.Skip("strace is not installed: whether a follower really syncs is not checked")
		}
		trace := filepath.Join(t.TempDir(), "syncs")
		nodes := startCluster(t, func(i int) []string {
			return []string{
				strace, "-f", "--seccomp-bpf", "-qq", "-e", "trace=fsync,fdatasync",
				"-o", trace + strconv.Itoa(i),
			}
		})
		exactLimit(t, nodes)
		leader, err := nodes.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		follower := (leader + 1) % nodes.Len()
		before := countSyncs(t, trace+strconv.Itoa(follower))
		for range 13 {
			response, err := acquireOne(t.Context(), nodes, leader)
			if err != nil || response.GetDecision() != quorleasev1.Decision_GRANTED {
				t.Fatalf("acquire: %v, %v", response, err)
			}
		}
		waitForSyncs(t, trace+strconv.Itoa(follower), before+13)
		killAll(t, nodes)
		for i := range nodes.Len() {
			if err := nodes.Start(i); err != nil {
				t.Fatal(err)
			}
		}
		if got := level(t, nodes, follower); got != 7 {
			t.Fatalf("level after 13 of 20, all killed and restarted: %d, want 7", got)
		}
		if granted := acquireMany(t, nodes, 20); granted != 7 {
			t.Fatalf("20 acquires of what remains: %d granted, want 7", granted)
		}
		if _, _, err := nodes.SameState(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func killAll(t *testing.T, nodes *Nodes) {
	t.Helper()
	for i := range nodes.Len() {
		if err := nodes.Signal(i, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

func countSyncs(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "sync(")
}

// waitForSyncs waits until the trace shows as many syncs: a follower may write
// the last entry a moment after the other one made the majority.
func waitForSyncs(t *testing.T, path string, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for {
		got := countSyncs(t, path)
		if got >= want {
			return
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			t.Fatalf("13 acquires: %d syncs in all at a follower, want at least %d", got, want)
		}
	}
}
