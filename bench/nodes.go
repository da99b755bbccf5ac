package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorlease/quorlease/api/codec"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// NodesConfig says how to start a cluster of real processes.
type NodesConfig struct {
	// Binary is the path of a built quorlease.
	Binary string
	// Dir holds one data directory a node. The caller removes it.
	Dir string
	// Count of nodes, 1 to 9, and Spare of those that have an address and do not run
	// until they are told to join. Both together 9 at most.
	Count, Spare int
	// Wrap goes in front of the command of a node, such as strace with its
	// arguments. Index counts from 0. Nil: nothing.
	Wrap func(index int) []string
	// Host is the IP address of a node. Nil: 127.0.0.1 for all.
	Host func(index int) string
	// Dial is how this process connects to the nodes. Nil: TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Args go behind the arguments of every node.
	Args []string
	// Log receives what the nodes print. Nil: discarded.
	Log io.Writer
}

// Nodes is a cluster of `quorlease serve` processes on loopback. Its methods
// may be called from several goroutines.
type Nodes struct {
	config NodesConfig
	nodes  []*process
	log    *lockedWriter
}

// process is one node: its addresses stay when it is restarted.
type process struct {
	id, data         string
	grpc, peer, http string
	wrap             []string

	mu     sync.Mutex
	cmd    *exec.Cmd     // guarded by mu; nil when it does not run
	exited chan struct{} // guarded by mu; closed when cmd has been reaped
	code   int           // guarded by mu; of the last that ended, -1 where a signal ended it
	joins  bool          // guarded by mu; it waits to be added rather than to form
	out    bool          // guarded by mu; it is no member
}

// StartNodes starts the processes and returns without waiting for a leader.
func StartNodes(config NodesConfig) (*Nodes, error) {
	total := config.Count + config.Spare
	if config.Count < 1 || config.Spare < 0 || total > 9 {
		return nil, fmt.Errorf("count of nodes: %d and %d to spare are out of range 1..9", config.Count, config.Spare)
	}
	ports, err := FreePorts(3 * total)
	if err != nil {
		return nil, err
	}
	if config.Host != nil {
		for i, address := range ports {
			_, port, _ := net.SplitHostPort(address)
			ports[i] = net.JoinHostPort(config.Host(i/3), port)
		}
	}
	n := &Nodes{config: config, log: &lockedWriter{w: config.Log}}
	for i := range total {
		p := &process{
			out:  i >= config.Count,
			id:   "n" + strconv.Itoa(i+1),
			data: filepath.Join(config.Dir, "n"+strconv.Itoa(i+1)),
			grpc: ports[3*i], peer: ports[3*i+1], http: ports[3*i+2],
		}
		if config.Wrap != nil {
			p.wrap = config.Wrap(i)
		}
		n.nodes = append(n.nodes, p)
	}
	for i := range config.Count {
		if err := n.Start(i); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// Len is the number of nodes, running or not, members or not.
func (n *Nodes) Len() int { return len(n.nodes) }

// GRPC is the client address of node i.
func (n *Nodes) GRPC(i int) string { return n.nodes[i].grpc }

// HTTP is the HTTP address of node i.
func (n *Nodes) HTTP(i int) string { return n.nodes[i].http }

// Data is the data directory of node i.
func (n *Nodes) Data(i int) string { return n.nodes[i].data }

// Pid is the process id of node i, 0 when it does not run. With Wrap it is the
// wrapper's.
func (n *Nodes) Pid(i int) int {
	p := n.nodes[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Start starts node i, which must not run.
func (n *Nodes) Start(i int) error {
	p := n.nodes[i]
	peers := make([]string, 0, len(n.nodes))
	for _, other := range n.nodes {
		peers = append(peers, other.peer)
	}
	args := append([]string(nil), p.wrap...)
	args = append(args, n.config.Binary, "serve",
		"--id", p.id, "--data", p.data, "--grpc", p.grpc, "--peer", p.peer, "--http", p.http,
		"--join", strings.Join(peers, ","))
	args = append(args, n.config.Args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.joins {
		args = append(args, "--learner")
	} else {
		args = append(args, "--bootstrap-expect", strconv.Itoa(n.config.Count))
	}
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it lives until it is told to stop, not as long as a call
	cmd.Stdout, cmd.Stderr = n.log, n.log
	cmd.SysProcAttr = ownGroup()
	if p.cmd != nil {
		return fmt.Errorf("start node %s: it runs as process %d", p.id, p.cmd.Process.Pid)
	}
	if err := startPinned(cmd); err != nil {
		return fmt.Errorf("start node %s: %w", p.id, err)
	}
	exited := make(chan struct{})
	p.cmd, p.exited = cmd, exited
	go func() {
		// How it ended is of little interest: most ends here are violent.
		_ = cmd.Wait()
		p.mu.Lock()
		p.cmd, p.code = nil, cmd.ProcessState.ExitCode()
		p.mu.Unlock()
		close(exited)
	}()
	return nil
}

// Signal sends a signal to node i and, with SIGKILL, waits until it is gone.
func (n *Nodes) Signal(i int, signal syscall.Signal) error {
	p := n.nodes[i]
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	p.mu.Unlock()
	if cmd == nil {
		return fmt.Errorf("signal node %s: it does not run", p.id)
	}
	// The whole group, so that a wrapper's child gets it too. One that has ended in this
	// moment is what SIGKILL is for.
	err := syscall.Kill(-cmd.Process.Pid, signal)
	if err != nil && (signal != syscall.SIGKILL || !errors.Is(err, syscall.ESRCH)) {
		return fmt.Errorf("signal node %s: %w", p.id, err)
	}
	if signal == syscall.SIGKILL {
		<-exited
	}
	return nil
}

// Stop asks node i to stop and waits until it has. One that takes longer than
// patience is killed.
func (n *Nodes) Stop(i int, patience time.Duration) error {
	p := n.nodes[i]
	p.mu.Lock()
	exited := p.exited
	p.mu.Unlock()
	if err := n.Signal(i, syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-exited:
		return nil
	case <-timer.C:
		return n.Signal(i, syscall.SIGKILL)
	}
}

// ID is the name of node i.
func (n *Nodes) ID(i int) string { return n.nodes[i].id }

// Close kills every node and waits for each. It is idempotent.
func (n *Nodes) Close() error {
	var errs []error
	for i := range n.nodes {
		if n.Pid(i) == 0 {
			continue
		}
		if err := n.Signal(i, syscall.SIGKILL); err != nil && n.Pid(i) != 0 {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Leader asks the running nodes until one names a leader that is healthy, and
// returns its index.
func (n *Nodes) Leader(ctx context.Context) (int, error) {
	for {
		for i := range n.nodes {
			if n.Pid(i) == 0 {
				continue
			}
			if leader, ok := n.leaderAt(ctx, i); ok {
				return leader, nil
			}
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return -1, fmt.Errorf("wait for a leader: %w", err)
		}
	}
}

// leaderAt is node i's opinion. A leader that does not run does not count.
func (n *Nodes) leaderAt(ctx context.Context, i int) (int, bool) {
	status, err := n.Status(ctx, i)
	if err != nil {
		return -1, false
	}
	for j, p := range n.nodes {
		if p.id == status.GetLeader() && n.Pid(j) != 0 {
			return j, true
		}
	}
	return -1, false
}

// Status is what node i says of the cluster.
func (n *Nodes) Status(ctx context.Context, i int) (*quorleasev1.ClusterStatusResponse, error) {
	conn, err := n.Conn(i)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return quorleasev1.NewClusterClient(conn).Status(ctx, &quorleasev1.ClusterStatusRequest{})
}

// Healthy waits until every node is seen healthy by the leader, and knows it.
func (n *Nodes) Healthy(ctx context.Context) error {
	for {
		if n.allHealthy(ctx) {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %d healthy nodes: %w", len(n.Members()), err)
		}
	}
}

func (n *Nodes) allHealthy(ctx context.Context) bool {
	leader, err := n.Leader(ctx)
	if err != nil {
		return false
	}
	status, err := n.Status(ctx, leader)
	members := n.Members()
	if err != nil || len(status.GetNodes()) != len(members) {
		return false
	}
	for _, node := range status.GetNodes() {
		if !node.GetHealthy() {
			return false
		}
	}
	for _, i := range members {
		if known, ok := n.leaderAt(ctx, i); !ok || known != leader {
			return false
		}
	}
	return true
}

// Conn connects to node i, lazily.
func (n *Nodes) Conn(i int) (*grpc.ClientConn, error) {
	if n.config.Dial == nil {
		return Dial(n.GRPC(i))
	}
	return Dial(n.GRPC(i), grpc.WithContextDialer(n.config.Dial))
}

// Dial connects to a node, lazily.
func Dial(address string, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+address, append(more,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.New())))...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	return conn, nil
}

// BuildBinary builds quorlease into dir and returns its path.
func BuildBinary(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "quorlease")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/quorlease/quorlease/cmd/quorlease")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build quorlease: %w\n%s", err, out)
	}
	return path, nil
}

// FreePorts finds loopback addresses that nobody listens on now.
func FreePorts(count int) ([]string, error) {
	addresses := make([]string, 0, count)
	listeners := make([]net.Listener, 0, count)
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it resolves nothing and returns at once
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		listeners = append(listeners, listener)
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lockedWriter lets several processes write whole chunks to one writer.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	if l.w == nil {
		return len(p), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
