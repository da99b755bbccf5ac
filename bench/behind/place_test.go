package behind_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	account "github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/upstream"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// speed is how fast a provider's time passes, unless a test says otherwise.
const speed = 60

// tables are how each provider answers, by its name.
var tables = map[upstream.API]string{
	upstream.OpenAI: provider.NameOpenAI, upstream.Azure: provider.NameAzure,
	upstream.Anthropic: provider.NameAnthropic,
	upstream.Gemini:    provider.NameGemini,
	upstream.Vertex:    provider.NameVertex,
	upstream.Bedrock:   provider.NameBedrock,
}

// place is a gateway, and the provider behind it.
type place struct {
	*gateway.Gateway
	upstream *upstream.Server
	// url is where the gateway is asked.
	url string

	mu   sync.Mutex
	told []answer // guarded by mu
}

// answer is what a program was told, without its body.
type answer struct {
	status int
	header http.Header
}

// setting says what a place is like. Change may be nil.
type setting struct {
	// deployment is the gateway's name of it.
	deployment string
	provider   upstream.Config
	faults     []upstream.Fault
	authority  gateway.Authority
	change     func(*gateway.Config)
}

// impatient makes a gateway wait for nothing: who is refused is told so.
func impatient(c *gateway.Config) { c.Classes = []gateway.Class{{MaxWait: -1}} }

// unbroken is impatient, with circuits that never open.
func unbroken(c *gateway.Config) {
	impatient(c)
	c.Circuits.CallThrottles, c.Circuits.FractionBP = -1, -1
}

// ask returns what asks the nodes, for one gateway or more.
func ask(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{
		Endpoints: []string{nodes.GRPC(0), nodes.GRPC(1), nodes.GRPC(2)}, Client: "gateway",
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// stand starts a provider, and a gateway in front of it. Chance has no part in it: what is
// drawn is the least.
func stand(t *testing.T, s setting) *place {
	t.Helper()
	if s.provider.Clock == nil {
		s.provider.Clock = upstream.Speed(speed)
	}
	if s.provider.TokensPerEvent == 0 {
		s.provider.TokensPerEvent = 3
	}
	if s.provider.Rules == (account.Rules{}) {
		// Who is refused is told of a limit: it is one that nobody here reaches.
		s.provider.Rules = upstream.Usual(s.provider.API, account.Limits{Requests: 1e6, Input: 1e7, Output: 1e7})
	}
	p := &place{}
	var err error
	if p.upstream, err = upstream.New(s.provider); err != nil {
		t.Fatal(err)
	}
	if err := p.upstream.SetFaults(s.faults...); err != nil {
		t.Fatal(err)
	}
	behind := listen(t, p.upstream)
	table, err := provider.Named(tables[s.provider.API])
	if err != nil {
		t.Fatal(err)
	}
	book, err := who.New(who.Config{Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	where, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	config := gateway.Config{
		Authority: s.authority, Who: book, Logger: slog.New(slog.DiscardHandler),
		Deployments: []gateway.Deployment{{Name: s.deployment, Provider: table, Upstream: where, Key: "secret"}},
		Draw:        func(int64) int64 { return 0 },
		Circuits:    circuit.Config{Jitter: func(time.Duration) time.Duration { return 0 }},
	}
	if s.change != nil {
		s.change(&config)
	}
	if p.Gateway, err = gateway.New(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	p.url = listen(t, p)
	return p
}

// listen serves until the test is over.
func listen(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	l, err := upstream.Listen(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.URL
}

// ServeHTTP notes what the gateway answers. A program that comes back finds that the authority
// has heard of what it was refused for, as it would after a real wait.
func (p *place) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.upstream.Ledger().Outcomes[upstream.Refused] > 0 {
		until(r.Context(), func() bool { return p.Stats().Told.Told > 0 })
	}
	p.Gateway.ServeHTTP(&noting{ResponseWriter: w, place: p}, r)
}

// noting is a program's answer on its way.
type noting struct {
	http.ResponseWriter
	place *place
}

// WriteHeader notes the answer and sends it.
func (n *noting) WriteHeader(status int) {
	n.place.mu.Lock()
	n.place.told = append(n.place.told, answer{status, n.Header().Clone()})
	n.place.mu.Unlock()
	n.ResponseWriter.WriteHeader(status)
}

// Unwrap is what sends it.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// answers are what programs were told so far.
func (p *place) answers() []answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]answer(nil), p.told...)
}

// reached is how many calls the provider has seen.
func (p *place) reached() int {
	ledger := p.upstream.Ledger()
	return len(ledger.Calls) + ledger.Underway
}

// paths are where text is asked for.
var paths = map[upstream.API]string{
	upstream.OpenAI: "/v1/chat/completions", upstream.Anthropic: "/v1/messages",
}

// program is one that has no SDK: it sends what it is told to.
type program struct {
	http.Client
	url, name string
}

// newProgram has connections of its own, which end with the test.
func newProgram(t *testing.T, p *place, api upstream.API, name string) *program {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	return &program{http.Client{Transport: transport}, p.url + paths[api], name}
}

// prompt asks about something.
func prompt(about, more string) string {
	return `{"model":"model","max_tokens":16,"messages":[{"role":"user","content":"` + about + `"}]` + more + `}`
}

// send sends a request. Nothing in it says which attempt it is, unless headers do.
func (p *program) send(ctx context.Context, body string, headers ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer key")
	r.Header.Set("X-Client-Id", p.name)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return p.Do(r)
}

// reply is an answer that was read to its end.
type reply struct {
	answer
	body []byte
}

// call sends a request and reads the answer.
func (p *program) call(ctx context.Context, body string, headers ...string) (reply, error) {
	got, err := p.send(ctx, body, headers...)
	if err != nil {
		return reply{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return reply{answer{got.StatusCode, got.Header}, text}, err
}

// code is the one in the body of an error of OpenAI's form.
func (r *reply) code() string {
	var said struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.NewDecoder(bytes.NewReader(r.body)).Decode(&said) != nil {
		return ""
	}
	return said.Error.Code
}
