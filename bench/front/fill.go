package front

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/upstream"
)

// Fill is how much of a limit was used by prompts of many sizes, and what the provider
// refused of it.
type Fill struct {
	// Used are the parts of the provider's limit that were billed, in one fifth of the
	// time after another.
	Used []float64 `json:"used"`
	// Calls reached the provider in that time, and Throttled were refused there with a 429.
	Calls     int64 `json:"calls"`
	Throttled int64 `json:"throttled"`
	// Tokens were billed, and Estimated is what the provider had taken them for when they
	// arrived: one for four characters.
	Tokens    int64 `json:"tokens"`
	Estimated int64 `json:"estimated"`
	// Target is the part of the limit that is handed out.
	Target string `json:"target"`
}

const (
	// sizedMean and sizedSigma are those of prompts, in words of two tokens, and of their
	// logarithms.
	sizedMean, sizedSigma = 1000, 0.2
	// sizedMost is the longest, in words.
	sizedMost = 4 * sizedMean
	// shortLatency is how long the provider that is short takes.
	shortLatency = 30 * time.Millisecond
	// windows are looked at one after the other.
	windows = 5
)

// word is long, so that the provider's count of them is not what one estimates who knows
// its characters alone, nor what a gateway does.
const word = " quotations"

// sizes draws the sizes of prompts. It may be used by many at the same time.
type sizes struct {
	mu     sync.Mutex
	random *rand.Rand
	text   []byte
}

func newSizes(seed uint64) *sizes {
	s := &sizes{random: rand.New(rand.NewPCG(seed, 0))}
	for range sizedMost {
		s.text = append(s.text, word...)
	}
	return s
}

// words is how many the next prompt has: a lognormal number.
func (s *sizes) words() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := sizedMean * math.Exp(sizedSigma*s.random.NormFloat64()-sizedSigma*sizedSigma/2)
	return max(1, min(int(n), sizedMost))
}

// body writes the next request.
func (s *sizes) body(to []byte) []byte {
	return fmt.Appendf(to, `{"model":%q,"max_tokens":8,"messages":[{"role":"user","content":"%d%s"}]}`,
		sized, asked.Add(1), s.text[:s.words()*len(word)])
}

// fill asks for more than the limit has.
func (p *place) fill(ctx context.Context) (*Fill, error) {
	c := p.config
	c.say("a limit is used up for %v", c.Fill)
	d := &door{
		address: p.programs, path: "/v1/messages", client: "program-", clients: clients, body: newSizes(c.Seed).body,
		header: "X-Api-Key: none\r\nAnthropic-Version: 2023-06-01\r\n", timeout: c.Timeout,
	}
	defer d.close()
	config := c.load(c.Callers, 0)
	// What was not known at first is learnt.
	config.Warmup, config.Length = c.Fill/5, c.Fill
	var from time.Duration
	config.Began = func(context.Context, time.Time) { from = p.clock.Now() }
	m, err := load.Run(ctx, &config, d)
	if err != nil {
		return nil, err
	}
	if _, err := timed(m, config.Length); err != nil {
		return nil, fmt.Errorf("use up a limit: %w", err)
	}
	f := &Fill{Target: sizedTarget}
	f.count(p.short.Ledger().Calls, from, c.Fill)
	return f, nil
}

// count sums up what the provider has seen from a moment on, for so long.
func (f *Fill) count(calls []upstream.Call, from, length time.Duration) {
	var used [windows]int64
	for i := range calls {
		call := &calls[i]
		at := call.Arrived - from
		if at < 0 || at >= length {
			continue
		}
		f.Calls++
		if call.Outcome == upstream.Refused {
			f.Throttled++
			continue
		}
		used[int64(at)*windows/int64(length)] += call.Billed.Input
		f.Tokens += call.Billed.Input
		f.Estimated += call.Estimated.Input
	}
	for _, tokens := range used {
		f.Used = append(f.Used, float64(tokens)/(sizedRate*length.Seconds()/windows))
	}
}
