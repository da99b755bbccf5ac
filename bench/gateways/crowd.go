package gateways

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// work is one piece of work that a program sends, maybe several times.
type work struct {
	// client is who sends it, class the priority class it is of.
	client, class string
	// attempt is what it says of its retries. -1: nothing.
	attempt int
	// path and body are the request.
	path string
	body []byte
}

// sent is one request, and what became of it.
type sent struct {
	client       string
	began, ended time.Duration
	// status is 0 where nothing was answered.
	status int
	// reason is the code of a refusal.
	reason string
	// after is what it asks to wait, in the scenario's time.
	after time.Duration
}

// took is how long it took.
func (s *sent) took() time.Duration { return s.ended - s.began }

func (s *sent) ok() bool { return s.status == http.StatusOK }

// crowd is the programs of a storm: they all stand on one stage.
type crowd struct {
	Stage
	ctx context.Context //nolint:containedctx // that of the whole play
	// programs are those that run.
	programs sync.WaitGroup

	mu   sync.Mutex
	rand *rand.Rand // guarded by mu
	sent []sent     // guarded by mu
	err  error      // guarded by mu
}

func newCrowd(ctx context.Context, h *House, stage Stage) *crowd {
	return &crowd{Stage: stage, ctx: ctx, rand: rand.New(rand.NewPCG(h.Seed, 0))} //nolint:gosec // it is for a game
}

// send sends w through a gateway.
func (c *crowd) send(gateway int, w work) sent {
	header := http.Header{"X-Client-Id": {w.client}, "Authorization": {"Bearer none"}, "X-Api-Key": {"none"}}
	if w.class != "" {
		header.Set("X-Quorlease-Class", w.class)
	}
	if w.attempt >= 0 {
		header.Set("X-Retry-Attempt", strconv.Itoa(w.attempt))
	}
	s := sent{client: w.client, began: c.Now()}
	answer, err := c.Send(c.ctx, gateway, Request{Path: w.path, Header: header, Body: w.body})
	s.ended = c.Now()
	if err == nil {
		s.status = answer.Status
		s.after = c.hint(answer.Header)
		if !s.ok() {
			s.reason = reasonOf(answer.Body)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, s)
	return s
}

// hint is how long an answer asks to wait. Gateways say it in the process's time.
func (c *crowd) hint(h http.Header) time.Duration {
	ms, err := strconv.ParseInt(h.Get("Retry-After-Ms"), 10, 64)
	if err != nil {
		seconds, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
		if err != nil {
			return 0
		}
		ms = 1000 * seconds
	}
	return time.Duration(ms) * time.Millisecond * time.Duration(c.Pace())
}

// reasonOf is the code in a body that says no, whoever's form it has.
func reasonOf(body []byte) string {
	var problem struct {
		Error struct {
			Code    string `json:"code"`
			Type    string `json:"type"`
			Details struct {
				Code string `json:"error_code"`
			} `json:"details"`
		} `json:"error"`
		Reason string `json:"reason"`
	}
	if json.Unmarshal(body, &problem) != nil {
		return "unreadable"
	}
	for _, code := range []string{problem.Error.Details.Code, problem.Error.Code, problem.Reason, problem.Error.Type} {
		if code != "" {
			return code
		}
	}
	return "unknown"
}

// fail notes what went wrong with the stage.
func (c *crowd) fail(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// all are the requests so far.
func (c *crowd) all() []sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sent)
}

// of are the requests of a client so far.
func (c *crowd) of(client string) (own []sent) {
	for _, s := range c.all() {
		if s.client == client {
			own = append(own, s)
		}
	}
	return own
}

// failed is what went wrong with the stage, or that the play was ended.
func (c *crowd) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return c.ctx.Err()
}

// pass lets the scenario's time pass. It is false when the play is over.
func (c *crowd) pass(d time.Duration) bool { return c.Sleep(c.ctx, d) == nil }

// until lets it pass until a moment.
func (c *crowd) until(at time.Duration) bool { return c.pass(at - c.Now()) }

// between draws a duration.
func (c *crowd) between(low, high time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return low + time.Duration(c.rand.Int64N(int64(high-low)+1))
}

// poisson draws moments as people come who know nothing of one another, from a moment on
// until another.
func (c *crowd) poisson(perMinute float64, from, until time.Duration) (moments []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gap := float64(time.Minute) / perMinute
	for at := from; ; {
		at += time.Duration(c.rand.ExpFloat64() * gap)
		if at >= until {
			return moments
		}
		moments = append(moments, at)
	}
}

// reckoned draws moments as poisson does, as many as are to be expected: the moments are
// chance, their number is not.
func (c *crowd) reckoned(perMinute float64, until time.Duration) []time.Duration {
	moments := make([]time.Duration, int(math.Round(perMinute*until.Minutes())))
	for i := range moments {
		moments[i] = c.between(0, until)
	}
	slices.Sort(moments)
	return moments
}

// come starts a program at each moment, in order, while more says so.
func (c *crowd) come(moments []time.Duration, more func() bool, program func(n int)) {
	c.programs.Go(func() {
		for n, at := range moments {
			if !c.until(at) || !more() {
				return
			}
			c.programs.Go(func() { program(n) })
		}
	})
}

// prompt is a text of so many tokens, four characters each, and different for each number.
func prompt(number, tokens int) string {
	// Eight digits are three tokens, and blanks are none.
	return fmt.Sprintf("    %08d", number) + strings.Repeat(" abc", tokens-3)
}

// chat is a request in the form of OpenAI.
func chat(model string, number, tokens, output int) []byte {
	return fmt.Appendf(nil, `{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`,
		model, output, prompt(number, tokens))
}

// message is a request in the form of Anthropic.
func message(model string, stream bool, number, tokens, output int) []byte {
	return fmt.Appendf(nil, `{"model":%q,"stream":%t,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`,
		model, stream, output, prompt(number, tokens))
}
