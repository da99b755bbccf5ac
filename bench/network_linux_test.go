package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
)

// network is a few hosts in network namespaces of their own, on one bridge that
// has one too. The machine's own network is not touched.
type network struct {
	t      *testing.T
	prefix string
}

func newNetwork(t *testing.T, hosts int) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: nodes that are cut off by the network were not tried")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip is not installed (Debian: iproute2): nodes that are cut off by the network were not tried")
	}
	n := &network{t: t, prefix: fmt.Sprintf("ql%d-", os.Getpid())}
	n.ip("netns", "add", n.prefix+"bridge")
	t.Cleanup(func() { n.ip("netns", "del", n.prefix+"bridge") })
	n.ip("-n", n.prefix+"bridge", "link", "add", "br0", "type", "bridge")
	n.ip("-n", n.prefix+"bridge", "link", "set", "br0", "up")
	for i := range hosts {
		host, port := n.name(i), fmt.Sprint("p", i)
		n.ip("netns", "add", host)
		t.Cleanup(func() { n.ip("netns", "del", host) })
		n.ip("-n", host, "link", "set", "lo", "up")
		n.ip("link", "add", "eth0", "netns", host, "type", "veth", "peer", "name", port, "netns", n.prefix+"bridge")
		n.ip("-n", n.prefix+"bridge", "link", "set", port, "master", "br0", "up")
		n.ip("-n", host, "addr", "add", n.address(i)+"/24", "dev", "eth0")
		n.ip("-n", host, "link", "set", "eth0", "up")
	}
	return n
}

func (n *network) name(host int) string    { return fmt.Sprint(n.prefix, host) }
func (n *network) address(host int) string { return fmt.Sprintf("10.99.0.%d", host+1) }

func (n *network) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// isolate takes a host off the network: nothing is refused, nothing arrives.
func (n *network) isolate(host int) {
	n.ip("-n", n.prefix+"bridge", "link", "set", fmt.Sprint("p", host), "down")
}

// join puts it back.
func (n *network) join(host int) {
	n.ip("-n", n.prefix+"bridge", "link", "set", fmt.Sprint("p", host), "up")
}

// dialFrom dials TCP as if this process were on a host: a socket stays in the
// namespace in which it was made.
func (n *network) dialFrom(host int) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		type result struct {
			conn net.Conn
			err  error
		}
		done := make(chan result, 1)
		go func() {
			// The thread is not fit for anything else afterwards, and ends with this.
			runtime.LockOSThread()
			fd, err := unix.Open("/var/run/netns/"+n.name(host), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err == nil {
				err = unix.Setns(fd, unix.CLONE_NEWNET)
				_ = unix.Close(fd)
			}
			if err != nil {
				done <- result{err: err}
				return
			}
			conn, err := new(net.Dialer).DialContext(ctx, "tcp4", address)
			done <- result{conn, err}
		}()
		r := <-done
		return r.conn, r.err
	}
}

// conn is a connection from a host to a node.
func (n *network) conn(from int, address string) *grpc.ClientConn {
	n.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(n.dialFrom(from)))
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
			Binary: binary, Dir: t.TempDir(), Count: 3, Host: network.address, Args: []string{"--insecure"},
			Wrap: func(i int) []string { return []string{"ip", "netns", "exec", network.name(i)} },
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
			Endpoints: []string{nodes.GRPC(0), nodes.GRPC(1), nodes.GRPC(2)}, Client: "cut", Dial: network.dialFrom(me),
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
			Dial: network.dialFrom(me), Deadline: 5 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer patient.Close()
		offer(t, c, time.Second)

		network.isolate(leader)
		offer(t, c, 4*time.Second)
		if local := calm(t, c, patient); local != 0 || started.Load() != 0 {
			t.Errorf("5 s after the leader was cut off: %d local answers, %d alerts; want none", local, started.Load())
		}
		network.join(leader)
		network.leader(conns[(leader+1)%len(conns)])

		network.isolate(me)
		offer(t, c, 3*time.Second)
		if granted, local := offer(t, c, time.Second); granted != local || started.Load() != 1 {
			t.Errorf("cut off: %d granted, %d locally, %d alerts; want all and 1", granted, local, started.Load())
		}
		network.join(me)
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
