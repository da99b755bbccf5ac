package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/client/gateway/attempt"
)

// Server is one account at a provider, as a handler. It may be called by many
// goroutines.
type Server struct {
	config  Config
	markers *attempt.Reader
	calls   sync.WaitGroup
	mu      struct {
		sync.Mutex
		account *provider.Account
		faults  []faulty
		book    book
		closed  bool
		// begun counts calls, and underway has how those that run are ended.
		begun    uint64
		underway map[*call]context.CancelFunc
		// cached is when a marked beginning of a prompt was last used, by its hash.
		cached map[uint64]time.Duration
		// answered is what was answered, by credential and idempotency key.
		answered map[string]json.RawMessage
	}
}

// New is a provider, or an error that says everything that is wrong with the
// configuration.
func New(c Config) (*Server, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	markers, err := attempt.NewReader(nil)
	if err != nil {
		return nil, fmt.Errorf("read markers: %w", err)
	}
	s := &Server{config: c, markers: markers}
	s.mu.account = provider.NewAccount(c.Rules)
	s.mu.book.outcomes = make(map[Outcome]int64)
	s.mu.underway = make(map[*call]context.CancelFunc)
	s.mu.cached = make(map[uint64]time.Duration)
	s.mu.answered = make(map[string]json.RawMessage)
	return s, nil
}

// Close ends the calls that are under way and waits for them. Those that come later
// are refused.
func (s *Server) Close() {
	s.mu.Lock()
	s.mu.closed = true
	for _, cancel := range s.mu.underway {
		cancel()
	}
	s.mu.Unlock()
	s.calls.Wait()
}

// call is one request on its way through.
type call struct {
	s       *Server
	w       http.ResponseWriter
	what    shape
	request *request
	prompt  *prompt
	record  Call
	// number is how many calls began before; id is made of it.
	number uint64
	id     string
	// key is its credential and its idempotency key, empty without one.
	key string
	// fault is what goes wrong with it.
	fault Fault
	// admitted at begun: it takes a place in the account.
	admitted bool
	begun    time.Duration
	// read and created are the tokens of the prompt that the cache had, and that it has
	// now.
	read, created int64
	// length is how many tokens the answer has, and written how many there are.
	length, written int64
	// events is how many with text were sent, and sent when the last of any kind was.
	events int
	sent   time.Duration
	// elements: its stream is one array, and sentAny: it has begun.
	elements, sentAny bool
}

// ServeHTTP answers one call. Where a fault breaks the connection it panics with
// http.ErrAbortHandler, as a handler of net/http does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &call{s: s, w: w, record: Call{
		Client: short(r.Header.Get("x-client-id")), Attempt: s.markers.Read(r.Header).Retries,
		Key:  short(cmp.Or(r.Header.Get("idempotency-key"), r.Header.Get("x-request-id"))),
		Path: short(r.URL.Path), Outcome: Left,
	}}
	if !s.begin(c, cancel) {
		c.answer(denial{cause: Closed})
		return
	}
	defer s.end(c)
	c.serve(ctx, r)
}

func (s *Server) begin(c *call, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return false
	}
	s.calls.Add(1)
	s.mu.underway[c] = cancel
	c.number = s.mu.begun
	s.mu.begun++
	c.record.Arrived = s.config.Clock.Now()
	c.fault = s.faultLocked(c.record.Arrived, c.record.Client)
	prefix := map[API]string{Anthropic: "req_", OpenAI: "req_", Azure: ""}[s.config.API]
	c.id = fmt.Sprintf("%s%016x", prefix, mix(s.config.Seed+c.number))
	return true
}

func (s *Server) end(c *call) {
	now := s.config.Clock.Now()
	c.record.Ended = now
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.admitted {
		s.mu.account.Done()
		if s.config.EstimateOutput {
			s.mu.account.Settle(now, provider.Call{Output: c.written - c.record.Estimated.Output})
		}
		if s.config.API == Bedrock {
			used := c.prompt.tokens + c.written*max(1, s.config.Burndown)
			s.mu.account.Settle(now, provider.Call{Input: used - c.record.Estimated.Input})
		}
		c.record.Billed, c.record.CacheRead = provider.Call{Input: c.prompt.tokens, Output: c.written}, c.read
	}
	s.mu.book.add(c.record, s.config.LedgerMax)
	delete(s.mu.underway, c)
	s.calls.Done()
}

// serve finds out what is asked, asks the account, and answers.
func (c *call) serve(ctx context.Context, r *http.Request) {
	what, deployment := route(c.s.config.API, r.URL.Path)
	streams := false
	if c.s.config.API.isCloud() {
		what, deployment, streams = cloudRoute(c.s.config.API, r.URL.Path)
		c.elements = what == contents && r.URL.Query().Get("alt") != "sse"
	}
	c.what = what
	if what == "" || r.Method != http.MethodPost {
		c.refuse(ctx, denial{cause: NotFound, detail: r.Method + " " + short(r.URL.Path)})
		return
	}
	if credential(r.Header) == "" {
		c.refuse(ctx, denial{cause: Unauthorized})
		return
	}
	if key := r.Header.Get("idempotency-key"); key != "" {
		c.key = credential(r.Header) + "\x00" + key
		if c.replay() {
			return
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, r.Body, bodyMax))
	if err != nil {
		c.refuse(ctx, denial{cause: BodyTooLarge})
		return
	}
	if c.request, err = parse(what, deployment, body); err != nil {
		c.refuse(ctx, denial{cause: Malformed, detail: err.Error()})
		return
	}
	c.request.Stream = c.request.Stream || streams
	c.record.Model, c.record.Stream = short(c.request.Model), c.request.Stream && what != embeddings
	c.prompt = c.request.prompt()
	if no, ok := c.admit(); !ok {
		c.refuse(ctx, no)
		return
	}
	if c.record.Stream {
		c.stream(ctx)
		return
	}
	c.plain(ctx)
}

// admit asks the account, after the fault.
func (c *call) admit() (denial, bool) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Clock.Now()
	c.cacheLocked(now)
	call := s.estimated(c.what, c.request, c.prompt, c.read)
	c.record.Estimated = call
	if c.fault.Kind == Refuse {
		return denial{cause: c.fault.Cause, wait: c.fault.Wait, call: call, state: s.mu.account.State(now)}, false
	}
	answer := s.mu.account.Ask(now, call)
	state := s.mu.account.State(now)
	if !answer.OK {
		return denial{cause: causeOf(answer), wait: answer.RetryAfter, call: call, state: state}, false
	}
	c.admitted, c.begun, c.sent = true, now, now
	if c.read+c.created > 0 {
		s.mu.cached[c.prompt.prefix] = now
	}
	if c.what != embeddings {
		c.length = min(s.config.OutputTokens, c.request.limit())
	}
	switch s.config.API {
	case Anthropic, Gemini, Vertex:
		// The estimate is put right once the prompt has been read.
		s.mu.account.Settle(now, provider.Call{Input: c.prompt.tokens - c.read - call.Input})
	case OpenAI, Azure, Bedrock:
	}
	s.limited(c.w.Header(), c.what, now, state)
	s.named(c.w.Header(), c.id, s.config.Latency)
	return denial{}, true
}

const (
	// cachedFor is how long a beginning of a prompt stays in the cache, cachedMax how
	// many of them.
	cachedFor = 5 * time.Minute
	cachedMax = 4096
)

// cacheLocked looks whether the marked beginning of the prompt is in the cache, and
// makes room for it.
func (c *call) cacheLocked(now time.Duration) {
	if c.s.config.API != Anthropic || c.prompt.prefix == 0 {
		return
	}
	cached := c.s.mu.cached
	if used, ok := cached[c.prompt.prefix]; ok && now-used < cachedFor {
		c.read = c.prompt.prefixTokens
		return
	}
	if len(cached) >= cachedMax {
		for prefix, used := range cached {
			if now-used >= cachedFor {
				delete(cached, prefix)
			}
		}
	}
	if len(cached) < cachedMax {
		c.created = c.prompt.prefixTokens
	}
}

// refuse says no, as long as the client is there to hear it.
func (c *call) refuse(ctx context.Context, no denial) {
	if c.s.config.Clock.Sleep(ctx, provider.RefusalTime) != nil {
		return
	}
	if no.call != (provider.Call{}) {
		c.s.limited(c.w.Header(), c.what, c.s.config.Clock.Now(), no.state)
	}
	c.record.Outcome = Refused
	c.answer(no)
}

// answer writes a refusal.
func (c *call) answer(no denial) {
	s, h := c.s, c.w.Header()
	r := refusals[s.config.API][no.cause]
	now := s.config.Clock.Now()
	s.named(h, c.id, now-c.record.Arrived)
	r.hint(h, s.config.API, no.wait)
	c.record.Cause, c.record.Status = no.cause, r.status
	c.json(r.status, r.body(s.config.API, no.wait, no.message(r, c.record.Model, s.config.Start, now), c.id))
}

// json writes a whole body.
func (c *call) json(status int, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("a body of strings and numbers has no encoding: %v", err))
	}
	if status == http.StatusOK {
		c.keep(encoded)
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	// A client that has left does not hear it, whatever is done.
	_, _ = c.w.Write(encoded)
}
