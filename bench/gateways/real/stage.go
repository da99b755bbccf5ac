package real

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/hosts"
	"github.com/quorlease/quorlease/bench/upstream"
)

const (
	// paceMax is the fastest pace.
	paceMax = 60
	// readyWait is how long everything may take to be ready.
	readyWait = time.Minute
	// idleMax is how many connections programs keep to a gateway.
	idleMax = 4096
)

// Config says how to start processes.
type Config struct {
	// Binary is the path of a built quorlease.
	Binary string
	// Dir gets data, files and logs of the processes. The caller removes it.
	Dir string
	// Pace is how many times as fast as the machine's the scenario's time goes, 1 to 60. 0
	// is 60.
	Pace int
	// Apart puts each node on a host of its own, so that Cut can be done. It needs what
	// hosts.Open needs, and the nodes can't be reached from elsewhere.
	Apart bool
	// Before, where given, puts a handler in front of the provider.
	Before func(provider http.Handler) http.Handler
}

// Stage is a stage of real processes. Close ends them.
type Stage struct {
	*clock
	config   Config
	setting  gateways.Setting
	log      *os.File
	network  *hosts.Network
	nodes    *bench.Nodes
	provider *upstream.Server
	behind   *upstream.Listening
	gateways []*gateway
	programs http.Client
}

var _ gateways.Stage = (*Stage)(nil)

// Open starts everything and waits until it is ready.
func Open(ctx context.Context, c Config, setting gateways.Setting) (_ *Stage, err error) {
	if setting.Gateways < 1 || setting.Nodes < 1 {
		return nil, fmt.Errorf("setting: %d gateways and %d nodes, want 1 at least", setting.Gateways, setting.Nodes)
	}
	if c.Pace == 0 {
		c.Pace = paceMax
	}
	if c.Pace < 1 || c.Pace > paceMax {
		return nil, fmt.Errorf("pace: %d is not within 1 and %d", c.Pace, paceMax)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyWait, errors.New("it is not ready after a minute"))
	defer cancel()
	s := &Stage{clock: newClock(c.Pace), config: c, setting: setting}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.log, err = os.Create(filepath.Join(c.Dir, "nodes.log")); err != nil {
		return nil, fmt.Errorf("open the log of the nodes: %w", err)
	}
	if err := s.startNodes(ctx, setting.Nodes, setting.Limits); err != nil {
		return nil, err
	}
	if err := s.startProvider(ctx); err != nil {
		return nil, err
	}
	for i := range setting.Gateways {
		g, err := s.startGateway(i, setting.File(s.behind.URL))
		if err != nil {
			return nil, err
		}
		s.gateways = append(s.gateways, g)
	}
	for _, g := range s.gateways {
		if err := g.ready(ctx); err != nil {
			return nil, err
		}
	}
	dial := (&net.Dialer{}).DialContext
	if s.network != nil {
		dial = func(ctx context.Context, _, address string) (net.Conn, error) {
			return s.network.Dial(s.here())(ctx, address)
		}
	}
	s.programs.Transport = &http.Transport{
		DialContext: dial, MaxIdleConnsPerHost: idleMax, DisableCompression: true,
	}
	s.start()
	return s, nil
}

// startProvider has the provider listen where gateways find it.
func (s *Stage) startProvider(ctx context.Context) (err error) {
	c := s.setting.Provider
	c.Clock = s.clock
	if c.Start.IsZero() {
		c.Start = time.Now()
	}
	if s.provider, err = upstream.New(c); err != nil {
		return err
	}
	if err := s.provider.SetFaults(s.setting.Faults...); err != nil {
		return err
	}
	var listener net.Listener
	if s.network != nil {
		listener, err = s.network.Listen(ctx, s.here(), "127.0.0.1:0")
	} else {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return fmt.Errorf("listen for the provider: %w", err)
	}
	var handler http.Handler = &hinting{s.provider, s.clock, s.config.Pace, c.Start}
	if s.config.Before != nil {
		handler = s.config.Before(handler)
	}
	s.behind = upstream.Serve(listener, handler)
	return nil
}

// Pace is how many times as fast as the machine's its time goes.
func (s *Stage) Pace() int { return s.config.Pace }

// Provider is what stands behind the gateways.
func (s *Stage) Provider() *upstream.Server { return s.provider }

// Send sends one request through a gateway and reads the answer to its end.
func (s *Stage) Send(ctx context.Context, number int, r gateways.Request) (answer gateways.Answer, err error) {
	g, began := s.gateways[number], s.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+g.address+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return answer, fmt.Errorf("send to %s: %w", g.name, err)
	}
	if r.Header != nil {
		request.Header = r.Header.Clone()
	}
	if request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	got, err := s.programs.Do(request)
	if err != nil {
		return answer, fmt.Errorf("send to %s: %w", g.name, err)
	}
	defer got.Body.Close()
	answer.Status, answer.Header = got.StatusCode, got.Header
	answer.Body, err = io.ReadAll(got.Body)
	answer.Took = s.Now() - began
	if err != nil {
		return answer, fmt.Errorf("read the answer of %s: %w", g.name, err)
	}
	return answer, nil
}

// KillGateway ends a gateway with everything that it holds.
func (s *Stage) KillGateway(number int) error {
	s.gateways[number].Kill()
	return nil
}

// Alerts are how many alerts of lost quorum the gateways have raised, and when the last
// one was.
func (s *Stage) Alerts() (n int, last time.Duration) {
	for _, g := range s.gateways {
		raised, _ := g.alerts()
		for _, at := range raised {
			n, last = n+1, max(last, at)
		}
	}
	return n, last
}

// Cleared is how many of these are over, and when the last one was.
func (s *Stage) Cleared() (n int, last time.Duration) {
	for _, g := range s.gateways {
		_, over := g.alerts()
		for _, at := range over {
			n, last = n+1, max(last, at)
		}
	}
	return n, last
}

// Pages are where one can watch the nodes.
func (s *Stage) Pages() (urls []string) {
	for i := range s.nodes.Len() {
		urls = append(urls, "http://"+s.nodes.HTTP(i)+"/")
	}
	return urls
}

// Close ends all processes and waits for them. It may be called again.
func (s *Stage) Close() error {
	var errs []error
	s.programs.CloseIdleConnections()
	for _, g := range s.gateways {
		errs = append(errs, g.close())
	}
	if s.behind != nil {
		errs = append(errs, s.behind.Close())
		s.behind = nil
	}
	if s.provider != nil {
		s.provider.Close()
	}
	if s.nodes != nil {
		errs = append(errs, s.nodes.Close())
	}
	if s.network != nil {
		errs = append(errs, s.network.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	s.gateways, s.log = nil, nil
	return errors.Join(errs...)
}
