package failopen

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/quorlease/quorlease/fsm/retry"
	"github.com/quorlease/quorlease/fsm/window"
)

// DefaultRetries is the retry budget of a client of which the authority has said
// nothing yet: at most 3 retries of a piece of work, and at most a fifth of its
// requests over five minutes once there are more than 50.
func DefaultRetries() retry.Rule {
	return retry.Rule{
		MaxRetries: 3, MaxFraction: 2000, MinRequests: 50, Window: 5 * time.Minute, RetryAfter: time.Minute,
	}
}

func checkRetries(r *retry.Rule) error {
	switch {
	case r.MaxFraction < 0:
		return fmt.Errorf("retries: max_fraction %d: must not be negative", r.MaxFraction)
	case r.MinRequests < 0:
		return fmt.Errorf("retries: min_requests %d: must not be negative", r.MinRequests)
	case r.Window < window.Slices:
		return fmt.Errorf("retries: window %v: must be at least %dns", r.Window, window.Slices)
	case r.RetryAfter < time.Millisecond:
		return fmt.Errorf("retries: retry_after %v: must be at least 1ms", r.RetryAfter)
	}
	return nil
}

// budget is the retry budget of one client: its rule and what it was admitted.
type budget struct {
	rule retry.Rule
	// limited is false for a client that the authority gives no budget. Only while
	// it answers: a storm must not form because it is away.
	limited bool
	// revision of the limits that the rule was learnt with, if learnt.
	revision uint64
	learnt   bool
	counts   window.Counts
	// tokens is the balance, where there is one.
	tokens retry.Tokens
}

// learn replaces the rule. Slices of another length don't fit the new window:
// what was counted moves into the slice now, which only keeps it longer.
func (b *budget) learn(at time.Duration, revision uint64, rule retry.Rule) {
	b.revision, b.learnt = revision, true
	if old, length := window.Length(b.rule.Window), window.Length(rule.Window); old != length {
		total, retries := b.counts.Sum(window.At(int64(at), old))
		b.counts = window.Counts{}
		if total > 0 {
			b.counts.Add(window.At(int64(at), length), total, retries)
		}
	}
	b.rule = rule
}

// decide says whether the budget lets a request through. A first attempt always
// passes: what is bounded is how fast a client may fail. The floor is that of all
// processes together: this one has so many millionths of it.
func (b *budget) decide(at time.Duration, attempt uint32, ppm int64) Verdict {
	if attempt == 0 {
		return Verdict{Admit: true, Charge: -1}
	}
	rule := b.rule
	rule.MinRetries, rule.MinInterval = partOf(rule.Floor(), ppm), rule.Window
	total, retries := b.counts.Sum(b.slice(at))
	switch rule.Decide(total, retries, attempt) {
	case retry.Attempts:
		return Verdict{Reason: Attempts, Charge: -1, Never: true}
	case retry.Budget:
		return Verdict{
			Reason: RetryBudget, Charge: -1, RetryAfter: b.rule.RetryAfter,
			FreesIn: rule.FreesIn(int64(at), &b.counts),
		}
	case retry.Admit:
	}
	return Verdict{Admit: true, Charge: -1}
}

// partOf is so many millionths of n, at most WholePPM, rounded down: the parts of all
// are no more than the whole.
func partOf(n, ppm int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(ppm))
	part, _ := bits.Div64(hi, lo, WholePPM)
	return int64(part)
}

// record counts what was admitted. What is refused is never counted.
func (b *budget) record(at time.Duration, total, retries int64) {
	slice := b.slice(at)
	b.counts.Drop(slice)
	b.counts.Add(slice, total, retries)
}

func (b *budget) slice(at time.Duration) int64 {
	return window.At(int64(at), window.Length(b.rule.Window))
}

// pay pays for a retry from the balance of this process. It says no where that is
// spent, until a success or, where there is a floor, some time has refilled it.
func (b *budget) pay(at time.Duration, rule *retry.TokenRule) Verdict {
	if rule == nil || b.tokens.Retry(int64(at), *rule) {
		return Verdict{Admit: true, Charge: -1}
	}
	refused := Verdict{Reason: RetryBudget, Charge: -1, RetryAfter: b.rule.RetryAfter}
	if wait, ok := b.tokens.FreesIn(int64(at), *rule); ok {
		refused.FreesIn = wait
		refused.RetryAfter = (wait + time.Millisecond - 1).Truncate(time.Millisecond)
	}
	return refused
}

// idle says that forgetting the counts would change nothing.
func (b *budget) idle(at time.Duration, rule *retry.TokenRule) bool {
	total, _ := b.counts.Sum(b.slice(at))
	return total == 0 && (rule == nil || b.tokens.Full(int64(at), *rule))
}

// budgets are the clients of one process, mostly a single one.
type budgets struct {
	clients map[string]*budget
	most    int
	// standard is the rule of clients that nothing is known of, rest the budget
	// that clients share who find no place.
	standard retry.Rule
	rest     budget
	// tokens is the rule of balances, nil where there are none.
	tokens *retry.TokenRule
	// swept is when idle clients were last looked for.
	swept moment
}

func newBudgets(standard retry.Rule, tokens *retry.TokenRule, most int) budgets {
	return budgets{
		clients: make(map[string]*budget), most: most, standard: standard, tokens: tokens,
		rest: budget{rule: standard, limited: true},
	}
}

// of is the budget of a client. Where there are too many, those with nothing in
// their window make place, and the rest share one: stricter, never larger (G10).
func (b *budgets) of(at time.Duration, client string) *budget {
	if one := b.clients[client]; one != nil {
		return one
	}
	if len(b.clients) >= b.most {
		b.sweep(at)
	}
	if len(b.clients) >= b.most {
		return &b.rest
	}
	one := &budget{rule: b.standard, limited: true}
	b.clients[strings.Clone(client)] = one
	return one
}

// sweep forgets idle clients, once a second at most: a stream of new names must
// not walk through all of them each time.
func (b *budgets) sweep(at time.Duration) {
	if b.swept.set && !b.swept.lasted(time.Second, at) {
		return
	}
	b.swept = moment{at, true}
	for client, one := range b.clients {
		if one.idle(at, b.tokens) {
			delete(b.clients, client)
		}
	}
}
