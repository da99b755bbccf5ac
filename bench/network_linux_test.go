package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench/hosts"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
)

// network is a few hosts that can be taken off the network.
type network struct {
	t *testing.T
	*hosts.Network
}

func newNetwork(t *testing.T, size int) *network {
	t.Helper()
	opened, err := hosts.Open(size)
	if errors.Is(err, hosts.ErrUnavailable) {
		t.Skipf("%v: nodes that are cut off by the network were not tried", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return &network{t, opened}
}

func (n *network) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// conn is a connection from a host to a node.
func (n *network) conn(from int, address string) *grpc.ClientConn {
	n.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(n.Dial(from)))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// leader waits until a node says that all are healthy and who leads.
func (n *network) leader(conn *grpc.ClientConn) string {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 30*time.Second)
	defer cancel()
	for {
		status, err := quorleasev1.NewClusterClient(conn).Status(ctx, &quorleasev1.ClusterStatusRequest{})
		healthy := 0
		for _, node := range status.GetNodes() {
			if node.GetHealthy() {
				healthy++
			}
		}
		if err == nil && healthy == 3 && status.GetLeader() != "" {
			return status.GetLeader()
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			n.t.Fatalf("no healthy cluster: %v", status)
		}
	}
}

// calm is how many answers are given locally in a second. Where a patient client that
// asks the same meanwhile is kept waiting for half of the other's deadline, the machine
// stood still: then a local answer is right, and another second is looked at.
func calm(t *testing.T, c, patient *client.Client) (local int) {
	t.Helper()
	for range 5 {
		slowest, asking, done := time.Duration(0), sync.WaitGroup{}, make(chan struct{})
		asking.Go(func() { slowest = slowestOf(t, patient, done) })
		_, local = offer(t, c, time.Second)
		close(done)
		asking.Wait()
		if local == 0 || slowest < 75*time.Millisecond {
			break
		}
	}
	return local
}

// slowestOf asks until done and returns how long the slowest answer took.
func slowestOf(t *testing.T, c *client.Client, done <-chan struct{}) (slowest time.Duration) {
	for pause(t.Context(), 5*time.Millisecond) == nil {
		select {
		case <-done:
			return slowest
		default:
		}
		began := time.Now()
		if _, err := c.Acquire(t.Context(), client.Request{
			Charges: []client.Charge{{Limit: "demo", Dimension: "requests", Amount: 1}},
		}); err != nil {
			t.Error(err)
		}
		slowest = max(slowest, time.Since(began))
	}
	return slowest
}

// TestCutOff takes first the leader and then a client off the network. Nothing is
// refused: packets are lost.
func TestCutOff(t *testing.T) {
	t.Parallel()
	t.Run("G8_a_leader_cut_off_pages_nobody_and_a_client_cut_off_goes_on_alone", func(t *testing.T) {
		const me = 3
		network := newNetwork(t, 4)
		nodes, err := StartNodes(NodesConfig{
			Binary: binary, Dir: t.TempDir(), Count: 3, Host: network.Address, Args: []string{"--insecure"},
			Wrap: network.Wrap,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nodes.Close() })
		conns := []*grpc.ClientConn{
			network.conn(me, nodes.GRPC(0)), network.conn(me, nodes.GRPC(1)), network.conn(me, nodes.GRPC(2)),
		}
		leader := int(network.leader(conns[0])[1] - '1')
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := quorleasev1.NewLimitsClient(conns[leader]).Apply(ctx, &quorleasev1.LimitsApplyRequest{
			Limits: []*quorleasev1.Limit{generous("demo", quorleasev1.FallbackMode_OPEN_ON_LOSS)},
		}); err != nil {
			t.Fatal(err)
		}
		var started, ended atomic.Int64
		c, err := client.New(client.Config{
			Endpoints: []string{nodes.GRPC(0), nodes.GRPC(1), nodes.GRPC(2)}, Client: "cut", Dial: network.Dial(me),
			Deadline: 150 * time.Millisecond,
			Alerts: []alert.Sink{alert.Func(func(a alert.Alert) {
				if a.Resolved {
					ended.Add(1)
				} else {
					started.Add(1)
				}
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		patient, err := client.New(client.Config{
			Endpoints: []string{nodes.GRPC(0), nodes.GRPC(1), nodes.GRPC(2)}, Client: "patient",
			Dial: network.Dial(me), Deadline: 5 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer patient.Close()
		offer(t, c, time.Second)

		network.must(network.Isolate(leader))
		offer(t, c, 4*time.Second)
		if local := calm(t, c, patient); local != 0 || started.Load() != 0 {
			t.Errorf("5 s after the leader was cut off: %d local answers, %d alerts; want none", local, started.Load())
		}
		network.must(network.Join(leader))
		network.leader(conns[(leader+1)%len(conns)])

		network.must(network.Isolate(me))
		offer(t, c, 3*time.Second)
		if granted, local := offer(t, c, time.Second); granted != local || started.Load() != 1 {
			t.Errorf("cut off: %d granted, %d locally, %d alerts; want all and 1", granted, local, started.Load())
		}
		network.must(network.Join(me))
		offer(t, c, 5*time.Second)
		if local := calm(t, c, patient); local != 0 || started.Load() != 1 || ended.Load() != 1 {
			t.Errorf("back: %d local answers, %d alerts, %d resolved; want 0, 1 and 1", local, started.Load(), ended.Load())
		}
	})
}

// offer calls fifty times a second for d. Every call is granted, by whomever.
func offer(t *testing.T, c *client.Client, d time.Duration) (granted, local int) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := pause(t.Context(), 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		decision, err := c.Acquire(t.Context(), client.Request{
			Charges: []client.Charge{{Limit: "demo", Dimension: "requests", Amount: 1}},
		})
		if err != nil || !decision.Granted {
			t.Fatalf("%+v, %v; want a grant", decision, err)
		}
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("a call took %s, its deadline is 150ms", took)
		}
		granted++
		if decision.Source == client.Local {
			local++
		}
	}
	return granted, local
}
