package real_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/gateways/real"
	"github.com/quorlease/quorlease/bench/hosts"
	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/upstream"
)

// Bounds of the machine's time, on one that is busy.
const (
	// stallHalf is for how long half of live work may be held up by an election, and stallMax
	// for how long all of it. What a machine with nothing else to do needs is printed.
	stallHalf, stallMax = 2 * time.Second, 10 * time.Second
	// hurry is what is between the moment at which a call is paid and the one at which it
	// arrives.
	hurry = time.Second
	// alertMax is how soon gateways say that they decide by themselves, after the last node
	// of the majority has died: nodes need some of it to find out.
	alertMax = 3 * time.Second
)

// generous is a retry budget. Live work does not wait for a share for long: who is refused comes
// back until it is served, and that is not the storm that a budget is to stop.
const generous = "max_retries: 1000, max_fraction: 99%"

var faults = []fault{leaderKilled, followerParted, gatewayKilled, quorumLost}

// TestNight is A13 in a night: whatever fails, its bounds hold. The pace is one at which a
// machine with other work keeps up.
func TestNight(t *testing.T) {
	const (
		pace = 10
		// 96 tasks of the backlog take two minutes of the scenario's.
		part, span, takes = 0.016, 2 * time.Minute, 6 * time.Second
		// The limit's input tokens of a minute and together: no block is larger.
		rate, burst = 300_000, 25_000
	)
	s, _ := gateways.Find("s3-after-gateway")
	for _, what := range faults {
		t.Run(what.id, func(t *testing.T) {
			c := real.Config{Binary: binary, Dir: folder(t), Pace: pace, Apart: what.apart}
			h, f := house(c, part, span/4, what, func(s *gateways.Setting) {
				s.Limits = strings.ReplaceAll(s.Limits, `match: {client: "*"}`, `match: {client: "*"}, `+generous)
			})
			o := play(t, s, h, f)
			f.check(t, takes, "live")
			f.none(t, o, storm.ProviderNo)
			if part := f.figure(t, o, storm.LivePart); part != 100 {
				t.Errorf("%v %% of live work were done", part)
			}
			input := func(c *upstream.Call) int64 { return c.Estimated.Input }
			f.bounded(t, "tokens", over(f.ledger.Calls, input, rate, burst), float64(f.gateways)*burst, rate)
		})
	}
}

// TestFleet is A13 while an import drains. Each call takes a slot, so that no gateway holds
// blocks of anything.
func TestFleet(t *testing.T) {
	const (
		pace, instances = 5, 4
		// 400 jobs drain in 45 s of the scenario's, and the others send for 60 s.
		part, span, takes = 0.2, 60 * time.Second, 2 * time.Second
		jobs              = 400
		// The limit's requests of a minute and together, and slots.
		rate, burst, slots = 540, 9, 32
	)
	s, _ := gateways.Find("s2-ours-gateway")
	for _, what := range faults {
		t.Run(what.id, func(t *testing.T) {
			c := real.Config{Binary: binary, Dir: folder(t), Pace: pace, Apart: what.apart}
			h, f := house(c, part, span/4, what, func(s *gateways.Setting) {
				s.Gateways = instances
				// A share of slots is none.
				s.Limits = strings.Replace(s.Limits, "  rate:", "  on_quorum_loss: share\n  rate:", 1)
			})
			o := play(t, s, h, f)
			f.check(t, takes, "tenant-1", "tenant-2", "tenant-3", "tenant-4")
			if done := f.figure(t, o, storm.Unique); done != jobs {
				t.Errorf("%v of %d jobs are done", done, jobs)
			}
			own := func(c *upstream.Call) bool { return c.Model != "tenant-0" }
			imports := slices.DeleteFunc(slices.Clone(f.ledger.Calls), func(c upstream.Call) bool { return own(&c) })
			f.bounded(t, "calls", over(imports, func(*upstream.Call) int64 { return 1 }, rate, burst), 0, rate)
			if n := atOnce(imports); f.quorum == 0 && n > slots {
				t.Errorf("%d calls at once, want at most %d", n, slots)
			}
		})
	}
}

func play(t *testing.T, s gateways.Storm, h *gateways.House, f *faulty) *storm.Outcome {
	t.Helper()
	began := time.Now()
	o, err := s.Run(t.Context(), h)
	if errors.Is(err, hosts.ErrUnavailable) {
		t.Skipf("%v: a node that the network cuts off was not tried", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("played in %v; out of order from %v to %v of the scenario", time.Since(began), f.from, f.until)
	for i := range o.Figures {
		t.Log(o.Figures[i].Name, o.Figures[i].Value, o.Figures[i].Unit)
	}
	return o
}

func (f *faulty) figure(t *testing.T, o *storm.Outcome, m storm.Measure) float64 {
	t.Helper()
	one, ok := o.Figure(m)
	if !ok {
		t.Errorf("there is no %s", m)
	}
	return one.Value
}

func (f *faulty) none(t *testing.T, o *storm.Outcome, m storm.Measure) {
	t.Helper()
	if n := f.figure(t, o, m); n != 0 {
		t.Errorf("%s: %v, want 0", m, n)
	}
}

// bounded holds what went beyond burst and rate to what gateways may hold, and to what comes
// of how long a call takes to the provider.
func (f *faulty) bounded(t *testing.T, what string, excess, held, rate float64) {
	t.Helper()
	bound := held + rate*(time.Duration(f.Pace())*hurry).Minutes()
	t.Logf("%.0f %s beyond burst and rate; gateways may hold %.0f", excess, what, held)
	if excess > bound {
		t.Errorf("%.0f %s beyond burst and rate, want at most %.0f", excess, what, bound)
	}
}

// check holds what programs saw to what A13 says of all storms: nobody hangs, and whose work
// is not the backlog's, and takes so long, is not held up, and nothing
// is done twice unless a gateway died.
func (f *faulty) check(t *testing.T, takes time.Duration, clients ...string) {
	t.Helper()
	pace := time.Duration(f.Pace())
	var before, waits []time.Duration
	longest, refused, lost := time.Duration(0), 0, 0
	for i := range f.asked {
		one := &f.asked[i]
		lost += one.lost
		refused += one.refused
		longest = max(longest, one.longest)
		if one.err != nil {
			t.Errorf("what %s wanted at %v had no answer: %v", one.client, one.began, one.err)
		}
		wait := max(0, one.ended-one.began-takes) / pace
		switch {
		case !slices.Contains(clients, one.client) || one.began > f.until:
		case one.ended < f.from:
			before = append(before, wait)
		default:
			waits = append(waits, wait)
		}
	}
	if len(waits) == 0 || len(before) == 0 {
		t.Fatal("nobody wanted anything before something was out of order, or while it was")
	}
	slices.Sort(before)
	slices.Sort(waits)
	half, most, worst := waits[len(waits)/2], waits[len(waits)*9/10], waits[len(waits)-1]
	t.Logf("%d requests, %d times told to come back, %d times a gateway lost, the slowest answer %v",
		len(f.asked), refused, lost, longest)
	t.Logf("live work meanwhile: %d, half of it waited %v, nine tenths %v, all %v; before it was %v for nine tenths",
		len(waits), half, most, worst, before[len(before)*9/10])
	if longest > answerMax {
		t.Errorf("a program has waited %v for an answer, want at most %v", longest, answerMax)
	}
	if f.quorum > 0 {
		f.checkAlone(t)
	} else if half > stallHalf || worst > stallMax {
		t.Errorf("live work was held up for %v and %v, want at most %v and %v", half, worst, stallHalf, stallMax)
	}
	if n := f.twice(); n > 0 {
		t.Errorf("%d calls came to the provider twice", n)
	}
}

// checkAlone: without a quorum people are told, and work goes on.
func (f *faulty) checkAlone(t *testing.T) {
	t.Helper()
	after := (f.alerted - f.quorum) / time.Duration(f.Pace())
	alone := in(f.ledger.Calls, f.alerted, f.restarted)
	t.Logf("all gateways have said after %v that they decide by themselves; %d calls then", after, alone)
	if after > alertMax {
		t.Errorf("alerts after %v, want at most %v", after, alertMax)
	}
	if alone == 0 {
		t.Error("nothing came to the provider while there was no quorum")
	}
}
