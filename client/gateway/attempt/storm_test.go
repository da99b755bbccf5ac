package attempt

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway/canon"
)

// library is how a client library comes back, as far as a gateway can see it without
// the headers that count.
type library struct {
	name string
	// retries are made of one piece of work before its program gives up on it.
	retries int
	// wait is the pause before retry n, 1 first.
	wait func(n int, r *rand.Rand) time.Duration
	// body is the body of attempt n at job.
	body func(job, n int, now time.Duration, r *rand.Rand) string
}

func exponential(base, most time.Duration, low, high float64) func(int, *rand.Rand) time.Duration {
	return func(n int, r *rand.Rand) time.Duration {
		return time.Duration(float64(min(base<<min(n-1, 8), most)) * (low + (high-low)*r.Float64()))
	}
}

func fixed(d time.Duration) func(int, *rand.Rand) time.Duration {
	return func(int, *rand.Rand) time.Duration { return d }
}

func sameBytes(job, _ int, _ time.Duration, _ *rand.Rand) string {
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"item %d"}],"max_tokens":300}`, job)
}

// spelledAnew is a loop of one's own that builds the body each time, with what it draws
// for each try.
func spelledAnew(job, n int, now time.Duration, r *rand.Rand) string {
	id := fmt.Sprintf(`"metadata":{"try":%d,"at":%d},"seed":%d`, n, now, r.Uint32())
	prompt := fmt.Sprintf(`"messages": [{"content":"item %d", "role":"user"}]`, job)
	if n%2 == 0 {
		return "{" + id + "," + prompt + `,"max_tokens":300.0}`
	}
	return "{" + prompt + ` ,"max_tokens":3e2,` + id + "}"
}

// stamped is a prompt with the time in it: no two bodies mean the same.
func stamped(job, n int, now time.Duration, _ *rand.Rand) string {
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"It is %s. Item %d."}],"x":%d}`, now, job, n)
}

func libraries() []library {
	return []library{
		{"openai_python", 2, exponential(500*time.Millisecond, 8*time.Second, 0.75, 1), sameBytes},
		{"anthropic_python", 2, exponential(500*time.Millisecond, 8*time.Second, 0.75, 1), sameBytes},
		{"anthropic_python_that_waits_as_told", 2, fixed(60 * time.Second), sameBytes},
		{"openai_go_clamped", 2, fixed(8 * time.Second), sameBytes},
		{"vercel", 2, exponential(2*time.Second, time.Minute, 1, 1), sameBytes},
		{"dotnet", 3, exponential(800*time.Millisecond, time.Minute, 1, 1), sameBytes},
		{"aws", 2, exponential(time.Second, 20*time.Second, 0, 1), sameBytes},
		{"envoy", 3, exponential(25*time.Millisecond, 250*time.Millisecond, 0, 1), sameBytes},
		{"httpx_loop", 50, fixed(0), spelledAnew},
		{"httpx_loop_of_a_second", 5, fixed(time.Second), spelledAnew},
	}
}

// turn is one attempt of a worker that begins or ends.
type turn struct {
	at          time.Duration
	worker, job int
	n           int
	call        *Call
}

type agenda []turn

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(turn)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// storm is one client's workers against a provider that answers throttles.
type storm struct {
	library
	workers   int
	attempts  int
	throttled float64
	roundTrip time.Duration
}

// seen is what a Table made of attempts of which one knows what they were.
type seen struct{ retries, found, firsts, mistaken int }

func (s storm) run(t *testing.T, h *canon.Hasher, seed uint64) seen {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 17))
	tab := table(t, Config{})
	read := reader(t)
	var a agenda
	jobs := 0
	for w := range s.workers {
		heap.Push(&a, turn{worker: w, job: jobs, at: time.Duration(r.IntN(1000)) * time.Millisecond})
		jobs++
	}
	var count seen
	for begun := 0; a.Len() > 0; {
		next := heap.Pop(&a).(turn)
		if next.call == nil {
			if begun == s.attempts {
				continue
			}
			begun++
			call := s.begin(tab, h, read, next, r)
			count.add(next.n > 0, call.Attempt > 0)
			next.call = &call
			next.at += s.roundTrip
			heap.Push(&a, next)
			continue
		}
		outcome := Succeeded
		if r.Float64() < s.throttled {
			outcome = Throttled
		}
		next.call.End(next.at, outcome)
		next.call = nil
		if outcome == Throttled && next.n < s.retries {
			next.n++
			next.at += s.wait(next.n, r)
		} else {
			next.n, next.job = 0, jobs
			jobs++
		}
		heap.Push(&a, next)
	}
	return count
}

func (s storm) begin(tab *Table, h *canon.Hasher, read *Reader, at turn, r *rand.Rand) Call {
	none := make(http.Header)
	body := s.body(at.job, at.n, at.at, r)
	return tab.Begin(at.at, &Request{
		Client: "batch", Deployment: "m", Declared: read.Read(none), IDs: ReadIDs(h, none),
		Work: h.Join(h.Body([]byte(body)).Work, "POST", "/v1/chat/completions", "m"),
	})
}

func (s *seen) add(retry, found bool) {
	switch {
	case retry:
		s.retries++
		if found {
			s.found++
		}
	default:
		s.firsts++
		if found {
			s.mistaken++
		}
	}
}

// check wants 99 % of the retries. One first attempt of each worker may be mistaken: those
// with which a client that does nothing but fail begins, before its first retries arrive.
func (s *seen) check(t *testing.T, workers int) {
	t.Helper()
	t.Logf("%d of %d retries found, %d of %d first attempts mistaken", s.found, s.retries, s.mistaken, s.firsts)
	if s.retries == 0 || s.found*1000 < s.retries*990 {
		t.Errorf("%d of %d retries found, want 99 %%", s.found, s.retries)
	}
	if s.mistaken > workers {
		t.Errorf("%d of %d first attempts mistaken, want %d at most", s.mistaken, s.firsts, workers)
	}
}

// TestStorms: each library without a header that counts, in a storm of its own.
func TestStorms(t *testing.T) {
	h := hasher(t)
	for i, l := range libraries() {
		t.Run(l.name, func(t *testing.T) {
			s := storm{library: l, workers: 33, attempts: 5000, throttled: 0.94, roundTrip: 109 * time.Millisecond}
			count := s.run(t, h, uint64(i))
			count.check(t, s.workers)
		})
	}
	t.Run("half_of_it_fails", func(t *testing.T) {
		s := storm{library: libraries()[0], workers: 33, attempts: 5000, throttled: 0.38, roundTrip: 400 * time.Millisecond}
		count := s.run(t, h, 99)
		count.check(t, s.workers)
	})
}

// TestStampedStorms: bodies that differ each time. What is a first attempt among them
// nobody can say, so that only the number of retries found counts.
func TestStampedStorms(t *testing.T) {
	h := hasher(t)
	for i, test := range []struct {
		name string
		s    storm
	}{
		{"stamped_without_delay", storm{
			library{"", 1 << 30, fixed(0), stamped}, 33, 10_000, 0.94, 109 * time.Millisecond,
		}},
		{"stamped_every_second", storm{
			library{"", 1 << 30, fixed(time.Second), stamped}, 200, 20_000, 0.99, 50 * time.Millisecond,
		}},
		{"stamped_jittered", storm{
			library{"", 1 << 30, exponential(1500*time.Millisecond, 1500*time.Millisecond, 0, 1), stamped},
			40, 10_000, 0.9, 50 * time.Millisecond,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			count := test.s.run(t, h, uint64(i))
			counted := count.found + count.mistaken
			t.Logf("%d retries counted, there were %d among %d", counted, count.retries, count.retries+count.firsts)
			if counted*1000 < count.retries*990 || counted*1000 > count.retries*1020 {
				t.Errorf("%d counted, want %d or 1 %% less to 2 %% more", counted, count.retries)
			}
		})
	}
}

// TestHealthy: ten thousand distinct requests of clients that do not retry, or seldom.
func TestHealthy(t *testing.T) {
	h := hasher(t)
	never := library{"", 0, fixed(0), sameBytes}
	for i, test := range []struct {
		name string
		s    storm
	}{
		{"S1-33_all_succeed", storm{never, 8, 10_000, 0, 300 * time.Millisecond}},
		{"S1-33_some_are_throttled", storm{never, 8, 10_000, 0.02, 300 * time.Millisecond}},
		{"S1-33_many_are_throttled", storm{never, 40, 10_000, 0.2, 300 * time.Millisecond}},
		{"S1-33_stamped", storm{library{"", 0, fixed(0), stamped}, 8, 10_000, 0.05, 300 * time.Millisecond}},
	} {
		t.Run(test.name, func(t *testing.T) {
			count := test.s.run(t, h, uint64(i))
			if count.firsts != 10_000 || count.mistaken > 50 {
				t.Errorf("%d of %d mistaken, want 50 at most", count.mistaken, count.firsts)
			}
		})
	}
	t.Run("S1-33_the_same_again_and_again", func(t *testing.T) {
		tab := table(t, Config{})
		for n := range 10_000 {
			call := tab.Begin(time.Duration(n)*time.Second, work("c", 1))
			if call.Attempt != 0 || call.Duplicate {
				t.Fatalf("request %d: %+v", n, call)
			}
			call.End(time.Duration(n)*time.Second, Succeeded)
		}
	})
}

// TestOutage: a client that sends what is new each time while nothing succeeds is
// suspected of one retry for each failure, no more.
func TestOutage(t *testing.T) {
	tab := table(t, Config{})
	failed, suspected := 0, 0
	for n := range 1000 {
		now := time.Duration(n) * 10 * time.Millisecond
		call := tab.Begin(now, work("c", n))
		suspected += int(call.Attempt)
		if n%10 == 0 {
			call.End(now, Throttled)
			failed++
		} else {
			call.End(now, Failed)
		}
	}
	if suspected == 0 || suspected > failed {
		t.Errorf("%d suspected after %d failures", suspected, failed)
	}
}

// TestMostlyFails: a client that succeeds as often as it fails is not suspected, whatever
// the fraction says.
func TestMostlyFails(t *testing.T) {
	for _, test := range []struct {
		outcomes  []Outcome
		suspected bool
	}{
		{[]Outcome{Succeeded, Throttled}, false},
		{[]Outcome{Succeeded, Throttled, Throttled}, true},
	} {
		tab := table(t, Config{FractionBP: 1000})
		for n := range 300 {
			call := tab.Begin(time.Duration(n)*time.Millisecond, work("c", n))
			call.End(time.Duration(n)*time.Millisecond, test.outcomes[n%len(test.outcomes)])
		}
		if s := tab.Stats(); s.Suspected > 0 != test.suspected {
			t.Errorf("%v: %+v, suspected %v", test.outcomes, s, test.suspected)
		}
	}
}

// TestOldFailures: what failed more than ten seconds ago makes nobody suspect.
func TestOldFailures(t *testing.T) {
	tab := table(t, Config{})
	send := func(now time.Duration, from, n int) uint64 {
		for i := range n {
			call := tab.Begin(now, work("c", from+i))
			call.End(now, Throttled)
		}
		return tab.Stats().Suspected
	}
	before := send(0, 0, 20)
	if before == 0 {
		t.Error("twenty failures in a row are not suspect")
	}
	if after := send(10*time.Second, 100, 5); after != before {
		t.Errorf("ten seconds later %d more", after-before)
	}
	if after := send(14*time.Second, 200, 1); after != before {
		t.Errorf("a first request after four seconds: %d more", after-before)
	}
	if after := send(14*time.Second, 300, 1); after != before+1 {
		t.Errorf("a request that follows the sixth failure in ten seconds: %d more, want 1", after-before)
	}
	if after := send(2*time.Hour, 400, 20); after != before+16 {
		t.Errorf("after a long silence: %d more, want 15 of 20 failures", after-before-1)
	}
	tab = table(t, Config{})
	send(0, 0, 1)
	send(6*time.Second, 10, 4)
	if after := send(11*time.Second, 20, 2); after != 1 {
		t.Errorf("four failures five seconds ago and one now: %d suspected, want 1", after)
	}
}
