package bubble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/upstream"
	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/gateway/told"
	"github.com/quorlease/quorlease/cluster/clustertest"
)

// Stage is a gateways.Stage in virtual time. Make one with New, inside a bubble.
type Stage struct {
	upstream.Clock
	provider *upstream.Server
	// calls are those at the provider.
	calls   sync.WaitGroup
	members []*member
	// dead are gateways whose process is being taken apart.
	dead sync.WaitGroup

	// faults is held by what changes nodes.
	faults  sync.Mutex
	cluster *clustertest.Cluster

	mu struct {
		sync.Mutex
		// nodes are by address; nil where one does not run.
		nodes map[string]*served
		// caps is how many alerts of spend caps there were.
		caps int
		// alerts is how many there were of lost quorum, the last one at alerted.
		alerts  int
		alerted time.Duration
	}
}

// patience is how long nodes may take to take in a limits file.
const patience = 30 * time.Second

// New starts nodes, a provider and gateways, with the limits in force. tb is told of what
// can't be started. The nodes' files are in dir, or where it is empty in a place of tb's own.
// Close ends all of it, and has to be called inside the bubble.
func New(tb testing.TB, dir string, setting *gateways.Setting) (*Stage, error) {
	tb.Helper()
	s := &Stage{cluster: clustertest.New(tb, setting.Nodes, clustertest.Options{InMemory: true, Dir: dir})}
	s.mu.nodes = make(map[string]*served)
	for _, name := range s.cluster.Names() {
		if err := s.open(name); err != nil {
			return nil, err
		}
	}
	if err := s.Apply(context.Background(), setting.Limits); err != nil {
		return nil, err
	}
	s.Clock = upstream.Speed(1)
	provided := setting.Provider
	// Dates that the provider names are of the bubble's time.
	provided.Clock, provided.Start = s.Clock, time.Now()
	var err error
	if s.provider, err = upstream.New(provided); err != nil {
		return nil, err
	}
	for number := range setting.Gateways {
		m, err := s.join(number, setting.File("http://provider.invalid"))
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.members = append(s.members, m)
	}
	// Sessions learn what limits there are. The scenario begins when they have.
	<-time.After(time.Second)
	s.Clock = upstream.Speed(1)
	return s, s.provider.SetFaults(setting.Faults...)
}

// Close ends everything.
func (s *Stage) Close() error {
	var errs []error
	for _, m := range s.members {
		errs = append(errs, m.close())
	}
	s.dead.Wait()
	if s.provider != nil {
		s.provider.Close()
	}
	s.calls.Wait()
	for _, name := range s.cluster.Names() {
		if n := s.take(name); n != nil {
			errs = append(errs, n.close())
		}
	}
	s.cluster.Close()
	return errors.Join(errs...)
}

// Pace is 1: virtual time is the scenario's.
func (s *Stage) Pace() int { return 1 }

// Provider is what stands behind the gateways.
func (s *Stage) Provider() *upstream.Server { return s.provider }

// Send sends one request through a gateway.
func (s *Stage) Send(ctx context.Context, gateway int, r gateways.Request) (gateways.Answer, error) {
	return s.members[gateway].send(ctx, r)
}

// address is where a node's clients are told that it is.
func address(name string) string { return name + ":grpc" }

func (s *Stage) endpoints() (all []string) {
	for _, name := range s.cluster.Names() {
		all = append(all, address(name))
	}
	return all
}

// open serves a node that runs.
func (s *Stage) open(name string) error {
	n, err := serve(s.cluster.Node(name))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.nodes[address(name)] = n
	return nil
}

// take is a node's server, which is nobody's then.
func (s *Stage) take(name string) *served {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.mu.nodes[address(name)]
	delete(s.mu.nodes, address(name))
	return n
}

func (s *Stage) dial(ctx context.Context, to string, gateway int) (net.Conn, error) {
	s.mu.Lock()
	n := s.mu.nodes[to]
	s.mu.Unlock()
	if n == nil {
		return nil, fmt.Errorf("dial %s: %w", to, syscall.ECONNREFUSED)
	}
	return n.dial(ctx, gateway)
}

// Apply puts a limits file in force.
func (s *Stage) Apply(ctx context.Context, text string) error {
	request, err := limitsfile.Parse([]byte(text))
	if err != nil {
		return fmt.Errorf("limits file: %w", err)
	}
	limits, err := limitsfile.ResolveAll(request)
	if err != nil {
		return fmt.Errorf("limits file: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.faults.Lock()
	defer s.faults.Unlock()
	if _, err := s.cluster.Node(s.cluster.Leader()).ApplyLimits(ctx, limits); err != nil {
		return fmt.Errorf("apply limits: %w", err)
	}
	return nil
}

// Clear opens a key again that a provider's spend cap has blocked.
func (s *Stage) Clear(ctx context.Context, limit, key string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.faults.Lock()
	defer s.faults.Unlock()
	_, err := s.cluster.Node(s.cluster.Leader()).Do(ctx, &logv1.Operation{Kind: &logv1.Operation_Adjust{
		Adjust: &logv1.Adjust{Limit: limit, Key: key, Change: &logv1.Adjust_Clear{Clear: true}, Reason: "the bill is paid"},
	}}, 0)
	if err != nil {
		return fmt.Errorf("clear %s/%s: %w", limit, key, err)
	}
	return nil
}

// SpendCaps are how many alerts of a spend cap the gateways have raised, together.
func (s *Stage) SpendCaps() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.caps
}

// capped counts alerts of spend caps.
func (s *Stage) capped(told.SpendCap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.caps++
}

// alerted counts alerts of lost quorum.
func (s *Stage) alerted(a alert.Alert) {
	if !strings.HasPrefix(a.Kind, "FailOpen") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.alerts++
	s.mu.alerted = s.Now()
}

// Alerts are how many there were of lost quorum, and when the last one was.
func (s *Stage) Alerts() (n int, last time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.alerts, s.mu.alerted
}

// name is a node's, by its number.
func (s *Stage) name(node int) (string, error) {
	names := s.cluster.Names()
	if node < 0 || node >= len(names) {
		return "", fmt.Errorf("node %d: must be 0 to %d", node, len(names)-1)
	}
	return names[node], nil
}

// KillNode ends a node without a word.
func (s *Stage) KillNode(node int) error {
	s.faults.Lock()
	defer s.faults.Unlock()
	name, err := s.name(node)
	if err != nil {
		return err
	}
	n := s.take(name)
	if n == nil {
		return fmt.Errorf("node %d: does not run", node)
	}
	n.kill()
	s.cluster.Crash(name)
	return n.close()
}

// StartNode starts one that was ended.
func (s *Stage) StartNode(_ context.Context, node int) error {
	s.faults.Lock()
	defer s.faults.Unlock()
	name, err := s.name(node)
	if err != nil {
		return err
	}
	if slices.Contains(s.cluster.Running(), name) {
		return fmt.Errorf("node %d: runs", node)
	}
	s.cluster.Restart(name) //nolint:contextcheck // it outlives the call
	return s.open(name)
}

// Leader is the node that leads.
func (s *Stage) Leader(context.Context) (int, error) {
	s.faults.Lock()
	defer s.faults.Unlock()
	return slices.Index(s.cluster.Names(), s.cluster.Leader()), nil
}

// Cut takes a node's connections with the other nodes away.
func (s *Stage) Cut(node int) error {
	s.faults.Lock()
	defer s.faults.Unlock()
	name, err := s.name(node)
	if err == nil {
		s.cluster.Isolate(name)
	}
	return err
}

// Heal gives them back.
func (s *Stage) Heal(node int) error {
	s.faults.Lock()
	defer s.faults.Unlock()
	name, err := s.name(node)
	if err != nil {
		return err
	}
	for _, other := range s.cluster.Names() {
		if other != name {
			s.cluster.Board.Heal(name, other)
		}
	}
	return nil
}

// KillGateway ends a gateway with everything that it holds: nobody is told.
func (s *Stage) KillGateway(gateway int) error {
	if gateway < 0 || gateway >= len(s.members) {
		return fmt.Errorf("gateway %d: must be 0 to %d", gateway, len(s.members)-1)
	}
	m := s.members[gateway]
	m.kill()
	s.mu.Lock()
	for _, n := range s.mu.nodes {
		n.cut(gateway)
	}
	s.mu.Unlock()
	// What is left of it in this process tells nobody any more, and takes its time to find out.
	s.dead.Go(func() { _ = m.close() })
	return nil
}
