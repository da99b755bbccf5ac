package clienttest_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/api/codec"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/client/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fleet is a cluster and a connection to each of its nodes.
type fleet struct {
	*clienttest.Cluster
	conns []*grpc.ClientConn
}

func bubble(t *testing.T, nodes int, f func(t *testing.T, c *fleet)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := clienttest.New(nodes)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		err = c.LimitsFile("limits:\n- {name: a, rate: {requests: 10/s}, burst: {requests: 10}}\n")
		if err != nil {
			t.Fatal(err)
		}
		fleet := &fleet{Cluster: c}
		for _, address := range c.Endpoints() {
			conn, err := grpc.NewClient("passthrough:///"+address,
				grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(c.Dial),
				grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.New())))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fleet.conns = append(fleet.conns, conn)
		}
		f(t, fleet)
	})
}

func (c *fleet) acquire(t *testing.T, node int, n int64) (*quorleasev1.AcquireResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return quorleasev1.NewAdmissionClient(c.conns[node]).Acquire(ctx, &quorleasev1.AcquireRequest{
		Client: "c", Charges: []*quorleasev1.Charge{{Limit: "a", Dimension: "requests", Amount: n}},
	})
}

func (c *fleet) status(t *testing.T, node int) (*quorleasev1.ClusterStatusResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return quorleasev1.NewClusterClient(c.conns[node]).Status(ctx, &quorleasev1.ClusterStatusRequest{})
}

func TestNodesShareOneStateInTimeThatPasses(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *fleet) {
		for i, want := range []quorleasev1.Decision{
			quorleasev1.Decision_GRANTED, quorleasev1.Decision_GRANTED, quorleasev1.Decision_DENIED,
		} {
			if answer, err := c.acquire(t, i, 5); err != nil || answer.GetDecision() != want {
				t.Errorf("node %d: %v, %v", i, answer, err)
			}
		}
		pass(500 * time.Millisecond)
		if answer, err := c.acquire(t, 2, 5); err != nil || answer.GetDecision() != quorleasev1.Decision_GRANTED {
			t.Errorf("later: %v, %v", answer, err)
		}
		if sum := c.Counts(); sum.Acquires != 4 || c.Counts(2).Acquires != 2 || sum.Connections != 3 {
			t.Errorf("counted %+v", sum)
		}
	})
}

// pass lets time pass.
func pass(d time.Duration) { <-time.After(d) }

func TestStatusNamesMembersAndLeader(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *fleet) {
		c.SetLeader(1)
		answer, err := c.status(t, 2)
		if err != nil || answer.GetLeader() != "n2" || len(answer.GetNodes()) != 3 {
			t.Fatalf("%v, %v", answer, err)
		}
		for i, n := range answer.GetNodes() {
			if n.GetGrpc() != c.Endpoints()[i] || !n.GetHealthy() {
				t.Errorf("node %d: %v", i, n)
			}
		}
		c.Advertise(0, "")
		c.Advertise(1, "elsewhere:1")
		answer, err = c.status(t, 2)
		if err != nil || len(answer.GetNodes()) != 2 || answer.GetNodes()[0].GetGrpc() != "elsewhere:1" {
			t.Errorf("advertised: %v, %v", answer, err)
		}
		term := answer.GetTerm()
		c.Down(1)
		if answer, err = c.status(t, 2); answer.GetLeader() != "n1" || answer.GetTerm() != term+1 {
			t.Errorf("the leader is down: %v, %v", answer, err)
		}
		c.Down(0)
		if answer, err = c.status(t, 2); err != nil || answer.GetLeader() != "" {
			t.Errorf("two are down: %v, %v", answer, err)
		}
	})
}

func TestModes(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *fleet) {
		for _, m := range []struct {
			set    func(...int)
			reason string
			code   codes.Code
		}{
			{c.NoLeader, "NO_LEADER", codes.Unavailable},
			{c.NoQuorum, "NO_QUORUM", codes.Unavailable},
			{c.Unknown, "OUTCOME_UNKNOWN", codes.Unavailable},
			{c.Hang, "", codes.DeadlineExceeded},
		} {
			m.set()
			if _, err := c.acquire(t, 0, 1); status.Code(err) != m.code || session.Reason(err) != m.reason {
				t.Errorf("%s: %v", m.reason, err)
			}
			c.Serve()
			if _, err := c.acquire(t, 0, 1); err != nil {
				t.Errorf("after %s: %v", m.reason, err)
			}
		}
		c.NoQuorum(0)
		if answer, err := c.status(t, 1); err != nil || answer.GetLeader() != "n2" {
			t.Errorf("one is cut off: %v, %v", answer, err)
		}
		c.Serve()
		c.Delay(300 * time.Millisecond)
		started := time.Now()
		if _, err := c.acquire(t, 0, 1); err != nil || time.Since(started) != 300*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(started), err)
		}
		c.Delay(time.Hour)
		if _, err := c.acquire(t, 0, 1); server.FromStatus(status.Convert(err)).Cause.Code != codes.DeadlineExceeded {
			t.Errorf("too slow: %v", err)
		}
	})
}

func TestNetwork(t *testing.T) {
	bubble(t, 3, func(t *testing.T, c *fleet) {
		address := c.Endpoints()[0]
		if _, err := c.Dial(t.Context(), "elsewhere"); err == nil {
			t.Error("dialled a stranger")
		}
		c.Down(0)
		if _, err := c.Dial(t.Context(), address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("down: %v", err)
		}
		if err := c.Up(0); err != nil {
			t.Fatal(err)
		}
		if _, err := c.acquire(t, 0, 1); err != nil {
			t.Errorf("up: %v", err)
		}
		c.Freeze(0)
		started := time.Now()
		if _, err := c.acquire(t, 0, 1); status.Code(err) != codes.DeadlineExceeded || time.Since(started) != time.Second {
			t.Errorf("frozen: after %v: %v", time.Since(started), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Dial(ctx, address); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial a frozen node: %v", err)
		}
		if err := c.Up(0); err != nil {
			t.Fatal(err)
		}
		if _, err := c.acquire(t, 0, 1); err != nil {
			t.Errorf("thawed: %v", err)
		}
	})
}

func TestDrainAndRestart(t *testing.T) {
	bubble(t, 1, func(t *testing.T, c *fleet) {
		s, err := session.Open(t.Context(), c.conns[0], session.Hello{
			Client: "c", SessionID: "00112233445566778899aabbccddeeff",
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c.Drain()
		<-s.Ended()
		if session.Reason(s.Err()) != "SHUTTING_DOWN" {
			t.Errorf("it ended with %v", s.Err())
		}
		if err := c.Up(); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second) // gRPC's own backoff
		if _, err := c.acquire(t, 0, 1); err != nil {
			t.Errorf("restarted: %v", err)
		}
	})
}

func TestNewWantsNodes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, clienttest.NodesMax + 1} {
		if _, err := clienttest.New(n); err == nil {
			t.Errorf("%d nodes", n)
		}
	}
}
