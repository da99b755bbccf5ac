package alone_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/upstream"
	"github.com/quorlease/quorlease/client"
)

// kills is how often the gateway is killed. Five are enough to see that one is like another.
var kills = flag.Int("kills", 5, "how often the gateway is killed, 2 to 100")

func TestMain(m *testing.M) {
	// The goroutine that starts processes stays as long as this one.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

// What the limits of the test allow.
const (
	burst     = 100_000
	perSecond = 10
	debtOwed  = 20
)

const limits = `limits:
- {name: account, match: {deployment: "*"}, rate: {requests: 600/min}, burst: {requests: 100_000}}
- {name: debts, rate: {requests: 60/h}, burst: {requests: 20}, max_debt: 1h}
retry_budgets:
- {name: default, match: {client: "*"}, max_retries: 3, max_fraction: 20%}
`

// stage is a provider and what gateways in front of it are started with.
type stage struct {
	*testing.T
	binary, dir, file, text, commands string
	seen                              *upstream.Server
	began                             time.Time
	log                               *bench.Printed
}

func open(t *testing.T, binary string) *stage {
	t.Helper()
	seen, err := upstream.New(upstream.Config{API: upstream.OpenAI, Clock: upstream.Speed(60)})
	if err != nil {
		t.Fatal(err)
	}
	listening, err := upstream.Listen(seen)
	if err != nil {
		t.Fatal(err)
	}
	ports, err := bench.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		T: t, binary: binary, dir: t.TempDir(), seen: seen, commands: ports[0], began: time.Now(),
		log:  &bench.Printed{},
		text: "deployments: [{name: main, provider: openai, upstream: \"" + listening.URL + "\"}]\ncoalesce: false\n",
	}
	s.file = filepath.Join(s.dir, "limits.yaml")
	if err := os.WriteFile(s.file, []byte(limits), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listening.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	return s
}

// gateway starts one, whose authority is in it or at the endpoints of nodes.
func (s *stage) gateway(endpoints ...string) *bench.Gateway {
	s.Helper()
	config := bench.GatewayConfig{
		Binary: s.binary, Name: "alone", Dir: s.dir, Text: s.text, Endpoints: endpoints, Log: s.log,
	}
	if len(endpoints) == 0 {
		config.Args = []string{
			"--authority", "embedded", "--data", filepath.Join(s.dir, "state"), "--limits", s.file,
			"--authority-listen", s.commands,
		}
	}
	g, err := bench.StartGateway(config)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(g.Kill)
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	if err := g.Listening(ctx); err != nil {
		s.Fatal(err)
	}
	return g
}

// served is how many calls the provider has answered.
func (s *stage) served() int64 { return s.seen.Ledger().Outcomes[upstream.Served] }

// until waits until the provider has answered so many calls.
func (s *stage) until(ctx context.Context, served int64) {
	s.Helper()
	step := time.NewTicker(time.Millisecond)
	defer step.Stop()
	for s.served() < served {
		select {
		case <-step.C:
		case <-ctx.Done():
			s.Fatalf("%d calls were served, want %d", s.served(), served)
		}
	}
}

// load asks a gateway about a thousand times a second until ctx ends, and counts the calls that it
// lets through.
func (s *stage) load(ctx context.Context, url string) (passed int64) {
	transport := &http.Transport{MaxIdleConnsPerHost: callers}
	defer transport.CloseIdleConnections()
	var yes atomic.Int64
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			turn := time.NewTicker(callers * time.Millisecond)
			defer turn.Stop()
			for ctx.Err() == nil {
				if status, err := call(ctx, transport, url, "notes", "0"); err == nil && status == http.StatusOK {
					yes.Add(1)
				}
				select {
				case <-turn.C:
				case <-ctx.Done():
				}
			}
		})
	}
	calling.Wait()
	return yes.Load()
}

// callers ask together, each of them every so many milliseconds.
const callers = 32

// call asks once.
func call(ctx context.Context, transport http.RoundTripper, url, who, attempt string) (status int, err error) {
	const body = `{"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "Hello"}]}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer key")
	r.Header.Set("X-Client-Id", who)
	r.Header.Set("X-Retry-Attempt", attempt)
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}

// operator is a client of the embedded authority from outside.
func (s *stage) operator() *client.Client {
	s.Helper()
	c, err := client.New(client.Config{
		Endpoints: []string{s.commands}, Client: "operator", Deadline: 10 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// left is what a limit has left, less its debt.
func (s *stage) left(c *client.Client, limit string) int64 {
	s.Helper()
	d, err := c.Peek(s.Context(), "", client.Charge{Limit: limit, Dimension: "requests", Amount: 1})
	if err != nil || len(d.Remaining) != 1 {
		s.Fatalf("%+v, %v: want what is left of %s", d, err, limit)
	}
	return d.Remaining[0].Amount
}

// debited checks that everything that was let through is debited in what is on the disk.
func (s *stage) debited(c *client.Client) {
	s.Helper()
	served := s.served()
	left := s.left(c, "account")
	refilled := int64(time.Since(s.began).Seconds()*perSecond) + 1
	if most := burst + refilled - served; left > most {
		s.Errorf("%d calls were served, and %d are left of %d and %d that came since", served, left, burst, refilled)
	}
}

// owe makes a debt: a lease of all that there is is settled as more than that.
func (s *stage) owe(c *client.Client) {
	s.Helper()
	request := client.Request{
		Track: true, Charges: []client.Charge{{Limit: "debts", Dimension: "requests", Amount: 10}},
	}
	d, err := c.Acquire(s.Context(), request)
	if err != nil || !d.Granted || d.Source == client.Local {
		s.Fatalf("%+v, %v: want a lease", d, err)
	}
	settled, err := c.Settle(s.Context(), d.Lease, client.Usage{Dimension: "requests", Used: 20 + debtOwed})
	if err != nil {
		s.Fatalf("%+v, %v", settled, err)
	}
}

// storm retries until the budget of a client refuses it, and says how many passed.
func (s *stage) storm(url string) (passed int64) {
	s.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for range 1000 {
		switch status, err := call(s.Context(), transport, url, stormy, "1"); {
		case err != nil:
			s.Fatal(err)
		case status != http.StatusOK:
			return passed
		}
		passed++
	}
	s.Fatal("a thousand retries passed")
	return passed
}

// stormy is a client that only retries.
const stormy = "storm"

// recorded waits until the log has as many retries of that client.
func (s *stage) recorded(retries int64) {
	s.Helper()
	conn, err := bench.Dial(s.commands)
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	for {
		answer, err := quorleasev1.NewClientsClient(conn).List(ctx, &quorleasev1.ClientsListRequest{})
		for _, one := range answer.GetClients() {
			if one.GetClient() == stormy && one.GetRetries() >= retries {
				return
			}
		}
		if err != nil {
			s.Fatal(err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			s.Fatalf("the log does not have %d retries of %s: %v", retries, stormy, answer)
		}
	}
}

// TestAlone: what a gateway does whose authority is in it.
func TestAlone(t *testing.T) {
	t.Parallel()
	binary, err := bench.BuildBinary(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("G1_S3-38_debts_and_budgets_survive", func(t *testing.T) { open(t, binary).killed() })
	t.Run("moves", func(t *testing.T) { open(t, binary).moves() })
}

// killed: it is killed again and again while it is asked a thousand times a second. What it let
// through stays debited, a debt stays owed, and a spent retry budget spent.
func (s *stage) killed() {
	spent := int64(0)
	for round := range *kills {
		g := s.gateway()
		c := s.operator()
		s.debited(c)
		passed := s.storm("http://" + g.Address())
		switch left := s.left(c, "debts"); {
		case round == 0:
			s.owe(c)
			spent = passed
			s.recorded(spent)
		case left > debtOwed/4-debtOwed:
			s.Errorf("round %d: %d are left of a limit that owed %d", round, left, debtOwed)
		case passed > spent/10:
			s.Errorf("round %d: %d retries passed of a client that had spent its %d", round, passed, spent)
		}
		ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
		asked := make(chan int64, 1)
		go func() { asked <- s.load(ctx, "http://"+g.Address()) }()
		// It is killed while it is asked, at another moment each time.
		s.until(ctx, s.served()+200+int64(round%7)*37)
		g.Kill()
		cancel()
		if <-asked == 0 {
			s.Errorf("round %d: nothing was let through", round)
		}
		if err := c.Close(); err != nil {
			s.Error(err)
		}
	}
	s.gateway()
	c := s.operator()
	s.Cleanup(func() { _ = c.Close() })
	s.debited(c)
	s.Logf("%d kills: %d calls served, %d are left", *kills, s.served(), s.left(c, "account"))
}

// moves: from one process to a cluster nothing changes but where the authority is.
func (s *stage) moves() {
	nodes, err := bench.StartNodes(bench.NodesConfig{Binary: s.binary, Dir: s.TempDir(), Count: 1, Log: s.log})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = nodes.Close() })
	if err := nodes.Healthy(s.Context()); err != nil {
		s.Fatal(err)
	}
	apply := exec.CommandContext(s.Context(), s.binary, "limits", "apply", "-f", s.file, "--endpoints", nodes.GRPC(0))
	if out, err := apply.CombinedOutput(); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for i, endpoints := range [][]string{nil, {nodes.GRPC(0)}} {
		g := s.gateway(endpoints...)
		if status, err := call(s.Context(), transport, "http://"+g.Address(), "notes", "0"); status != http.StatusOK {
			s.Errorf("asking %q: %d, %v", endpoints, status, err)
		}
		if n := s.served(); n != int64(i+1) {
			s.Errorf("asking %q: %d calls were served", endpoints, n)
		}
		g.Kill()
	}
}
