package attempt

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway/canon"
)

func hasher(t testing.TB) *canon.Hasher {
	t.Helper()
	h, err := canon.New(canon.Config{Key: []byte("a key for tests, of 32 bytes ...")})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func table(t testing.TB, c Config) *Table {
	t.Helper()
	made, err := NewTable(c)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// work is a request of a client for work with a number.
func work(client string, n int) *Request {
	r := &Request{Client: client, Deployment: "d"}
	copy(r.Work[:], fmt.Sprintf("work %d", n))
	return r
}

func TestRules(t *testing.T) {
	for _, test := range []struct {
		name     string
		first    Outcome
		after    time.Duration
		attempt  uint32
		inferred Source
	}{
		{"after_a_429", Throttled, time.Second, 1, Inferred},
		{"after_a_5xx", Failed, time.Second, 1, Inferred},
		{"after_a_timeout", TimedOut, time.Second, 1, Inferred},
		{"after_it_went_away", Canceled, time.Second, 1, Inferred},
		{"after_a_success", Succeeded, time.Second, 0, First},
		{"after_a_4xx", Rejected, time.Second, 0, First},
		{"before_the_time_is_over", Throttled, 119 * time.Second, 1, Inferred},
		{"after_the_time_is_over", Throttled, 120 * time.Second, 0, First},
	} {
		t.Run(test.name, func(t *testing.T) {
			tab := table(t, Config{})
			first := tab.Begin(0, work("c", 1))
			first.End(time.Second, test.first)
			again := tab.Begin(time.Second+test.after, work("c", 1))
			if again.Attempt != test.attempt || again.Source != test.inferred || again.Duplicate {
				t.Errorf("%+v, want attempt %d, %v", again, test.attempt, test.inferred)
			}
			other := tab.Begin(time.Second+test.after, work("other", 1))
			if other.Attempt != 0 || other.Duplicate {
				t.Errorf("the work of another client: %+v", other)
			}
		})
	}
}

func TestChain(t *testing.T) {
	tab := table(t, Config{})
	now := time.Duration(0)
	for i := range uint32(RetriesMax + 5) {
		call := tab.Begin(now, work("c", 1))
		if want := min(i, RetriesMax); call.Attempt != want {
			t.Fatalf("attempt %d: %d", want, call.Attempt)
		}
		now += time.Second
		call.End(now, Throttled)
		call.End(now, Succeeded) // The second one does not count.
	}
}

// TestOnlyRaises: what is inferred never takes anything away from what is declared.
func TestOnlyRaises(t *testing.T) {
	tab := table(t, Config{})
	r := work("c", 1)
	r.Declared = Declaration{Retries: 2, Ceiling: 5, Marked: true}
	call := tab.Begin(0, r)
	if call.Attempt != 2 || call.Ceiling != 5 || call.Source != Declared {
		t.Errorf("unknown work: %+v", call)
	}
	call.End(0, Throttled)
	r.Declared = Declaration{Marked: true}
	call = tab.Begin(0, r)
	if call.Attempt != 3 || call.Ceiling != 3 || call.Source != Inferred {
		t.Errorf("a client that says 0: %+v", call)
	}
	call.End(0, Throttled)
	r.Declared = Declaration{Retries: 1, Ceiling: 1, Marked: true}
	if call = tab.Begin(0, r); call.Attempt != 4 || call.Ceiling != 4 || call.Source != Inferred {
		t.Errorf("a client that says less: %+v", call)
	}
	call.End(0, Throttled)
	r.Declared = Declaration{Retries: 9, Ceiling: 9, Marked: true}
	if call = tab.Begin(0, r); call.Attempt != 9 || call.Source != Declared {
		t.Errorf("a client that says more: %+v", call)
	}
}

// TestRefused: what the retry budget refuses makes nothing worse, so that a client that
// comes back when it was told to gets through once the first failure is old enough.
func TestRefused(t *testing.T) {
	tab := table(t, Config{})
	for i := range uint32(4) {
		call := tab.Begin(0, work("c", 1))
		if call.Attempt != i {
			t.Fatalf("attempt %d: %+v", i, call)
		}
		call.End(0, Throttled)
	}
	for _, at := range []time.Duration{0, 60 * time.Second, 119 * time.Second} {
		call := tab.Begin(at, work("c", 1))
		if call.Attempt != 4 {
			t.Errorf("at %v: %+v, want attempt 4", at, call)
		}
		call.End(at, Refused)
	}
	if call := tab.Begin(120*time.Second, work("c", 1)); call.Attempt != 0 {
		t.Errorf("two minutes after it failed: %+v", call)
	}
	// Who does not wait is not forgotten, until it is quiet.
	for at := 130 * time.Second; at < 10*time.Minute; at += 20 * time.Second {
		call := tab.Begin(at, work("c", 3))
		if at < 200*time.Second {
			call.End(at, Throttled)
			continue
		}
		if call.Attempt != 4 {
			t.Fatalf("a loop that is refused, at %v: %+v, want attempt 4", at, call)
		}
		call.End(at, Refused)
	}
	if call := tab.Begin(13*time.Minute, work("c", 3)); call.Attempt != 0 {
		t.Errorf("after a silence: %+v", call)
	}
	refused := tab.Begin(0, work("c", 2))
	refused.End(0, Refused)
	if call := tab.Begin(0, work("c", 2)); call.Attempt != 0 || call.Duplicate {
		t.Errorf("what was never forwarded: %+v", call)
	}
}

func TestDuplicates(t *testing.T) {
	tab := table(t, Config{})
	first := tab.Begin(0, work("c", 1))
	second := tab.Begin(0, work("c", 1))
	if first.Duplicate || !second.Duplicate || second.Attempt != 0 {
		t.Errorf("two at once: %+v and %+v", first, second)
	}
	first.End(time.Second, Throttled)
	if third := tab.Begin(time.Second, work("c", 1)); !third.Duplicate {
		t.Errorf("one is still in flight: %+v", third)
	} else {
		third.End(time.Second, Throttled)
	}
	second.End(time.Second, Throttled)
	if fourth := tab.Begin(time.Second, work("c", 1)); fourth.Duplicate || fourth.Attempt != 1 {
		t.Errorf("after both failed: %+v", fourth)
	}
	if s := tab.Stats(); s.Duplicates != 2 || s.Inferred != 1 {
		t.Errorf("%+v, want 2 duplicates, 1 inferred", s)
	}
	lost := tab.Begin(0, work("c", 7))
	long := tab.Begin(5*time.Minute, work("c", 7))
	if long.End(5*time.Minute, Refused); !long.Duplicate {
		t.Errorf("an attempt that takes longer than failures are remembered: %+v", long)
	}
	if late := tab.Begin(21*time.Minute, work("c", 7)); late.Duplicate || late.Attempt != 0 {
		t.Errorf("an attempt whose end nobody saw: %+v", late)
	}
	lost.End(21*time.Minute, Throttled) // Its place is another's now.
	if s := tab.Stats(); s.Entries > 2 {
		t.Errorf("%d entries", s.Entries)
	}
}

func TestIDs(t *testing.T) {
	h := hasher(t)
	for _, test := range []struct {
		name, header, first, second string
		outcome                     Outcome
		same                        bool
		attempt                     uint32
	}{
		{"failed_under_a_key", "Idempotency-Key", "k", "k", Throttled, false, 1},
		{"failed_under_another_key", "Idempotency-Key", "k", "l", Throttled, false, 0},
		{"aws", "amz-sdk-invocation-id", "k", "k", Failed, false, 1},
		{"azure", "x-ms-client-request-id", "k", "k", TimedOut, false, 1},
		{
			"google", "x-goog-api-client",
			"gccl-invocation-id/k gccl-attempt-count/1", "gl-go/1 gccl-invocation-id/k", Failed, false, 1,
		},
		{"request_id", "x-request-id", "k", "k", Canceled, false, 1},
		{"another_header", "x-other", "k", "k", Throttled, false, 0},
		{"too_long", "x-request-id", strings.Repeat("k", 257), strings.Repeat("k", 257), Throttled, false, 0},
		{"succeeded_under_a_key", "Idempotency-Key", "k", "k", Succeeded, true, 1},
		{"succeeded_under_a_key_with_other_work", "Idempotency-Key", "k", "k", Succeeded, false, 0},
		{"succeeded_under_a_request_id", "x-request-id", "k", "k", Succeeded, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			tab := table(t, Config{})
			r := work("c", 1)
			r.IDs = ReadIDs(h, header(test.header, test.first))
			call := tab.Begin(0, r)
			call.End(0, test.outcome)
			if !test.same {
				r = work("c", 2)
			}
			r.IDs = ReadIDs(h, header(test.header, test.second))
			if again := tab.Begin(time.Second, r); again.Attempt != test.attempt {
				t.Errorf("%+v, want attempt %d", again, test.attempt)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	tab := table(t, Config{PerClient: 16, Clients: 16, Entries: 512})
	for n := range 100 {
		call := tab.Begin(0, work("c", n))
		call.End(0, Throttled)
	}
	if s := tab.Stats(); s.Entries != 16 || s.Evicted != 84 {
		t.Errorf("one client: %+v, want 16 entries and 84 evicted", s)
	}
	if call := tab.Begin(0, work("c", 99)); call.Attempt != 1 {
		t.Errorf("the newest is gone: %+v", call)
	}
	if call := tab.Begin(0, work("c", 50)); call.Attempt != 0 {
		t.Errorf("the oldest is there: %+v", call)
	}
	var open []Call
	for n := range 1000 {
		open = append(open, tab.Begin(0, work(fmt.Sprintf("client %d", n), n)))
	}
	s := tab.Stats()
	if s.Clients > 16 || s.Entries > 512 || s.ClientsEvicted < 984 {
		t.Errorf("a thousand clients: %+v", s)
	}
	for i := range open {
		open[i].End(0, Throttled) // Most of them belong to clients that are gone.
	}
	if s := tab.Stats(); s.Clients > 16 || s.Entries > 16 {
		t.Errorf("after they ended: %+v", s)
	}
	many := table(t, Config{PerClient: 4096, Entries: 256})
	for n := range 100 {
		call := many.Begin(0, work("c", n))
		call.End(0, Throttled)
	}
	if s := many.Stats(); s.Entries != 16 || s.Evicted != 84 {
		t.Errorf("all entries of a part: %+v", s)
	}
	for n := range 10 {
		call := many.Begin(time.Hour, work("c", 1000+n))
		call.End(time.Hour, Succeeded)
	}
	if s := many.Stats(); s.Entries != 0 || s.Evicted != 84 {
		t.Errorf("what is too old is gone, and evicted nothing: %+v", s)
	}
}

func TestAdvise(t *testing.T) {
	tab := table(t, Config{})
	r := reader(t)
	for _, step := range []struct {
		name   string
		at     time.Duration
		client string
		marker string
		told   bool
	}{
		{"a_first_attempt", 0, "c", "0", false},
		{"a_retry", time.Second, "c", "1", true},
		{"again", time.Hour, "c", "2", false},
		{"another_client", time.Hour, "d", "1", true},
		{"an_hour_later", time.Hour + time.Second, "c", "1", true},
	} {
		t.Run(step.name, func(t *testing.T) {
			text := tab.Advise(step.at, step.client, r.Read(header("x-stainless-retry-count", step.marker)))
			if told := text != ""; told != step.told || told && !strings.Contains(text, `"`+step.client+`"`) {
				t.Errorf("%q", text)
			}
		})
	}
	if text := tab.Advise(0, "e", r.Read(header("x-envoy-attempt-count", "3"))); text != "" {
		t.Errorf("a proxy is no SDK: %q", text)
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{TTL: time.Millisecond}, "ttl: 1ms, 1s to 1h0m0s"},
		{Config{PerClient: 1}, "per client: 1, 16 to 1048576"},
		{Config{Clients: -1}, "clients: -1, 16 to 1048576"},
		{Config{Entries: 1}, "entries: 1, 256 to 16777216"},
		{Config{Gap: time.Hour}, "gap: 1h0m0s, 100ms to 1m0s"},
		{Config{Failures: 1 << 30}, "failures: 1073741824, 1 to 1048576"},
		{Config{FractionBP: 10_001}, "fraction: 10001, 1 to 10000"},
		{Config{AdviseEvery: 1}, "advise every: 1ns, 1m0s to 24h0m0s"},
	} {
		if _, err := NewTable(test.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q, want %q", err, test.want)
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	for status, want := range map[int]Outcome{
		200: Succeeded, 204: Succeeded, 302: Succeeded, 400: Rejected, 401: Rejected, 408: TimedOut,
		409: Failed, 413: Rejected, 425: Failed, 429: Throttled, 500: Failed, 503: Failed, 504: TimedOut, 529: Failed,
	} {
		if got := OutcomeOf(status); got != want {
			t.Errorf("%d: %d, want %d", status, got, want)
		}
	}
}

// TestCrowd: clients at once, more of them than are remembered.
func TestCrowd(t *testing.T) {
	tab := table(t, Config{PerClient: 16, Clients: 16, Entries: 256})
	var crowd sync.WaitGroup
	for g := range 8 {
		crowd.Go(func() {
			for n := range 2000 {
				now := time.Duration(n) * 100 * time.Millisecond
				call := tab.Begin(now, work(fmt.Sprintf("client %d", (g+n)%40), n%50))
				tab.Advise(now, "c", Declaration{SDK: 1})
				call.End(now, Outcome(1+(g+n)%7))
			}
		})
	}
	crowd.Wait()
	s := tab.Stats()
	if s.First+s.Declared+s.Inferred+s.Suspected != 16_000 || s.Clients > 16 || s.Entries > 256 {
		t.Errorf("%+v, want 16,000 attempts", s)
	}
	for i := range tab.shards {
		s := &tab.shards[i]
		if len(s.keys) != s.entriesByAge.n || len(s.names) != s.clientsByAge.n ||
			len(s.entries.list) != len(s.entries.free)+len(s.keys) {
			t.Errorf("part %d: %d keys, %d ordered, %d places, %d free",
				i, len(s.keys), s.entriesByAge.n, len(s.entries.list), len(s.entries.free))
		}
	}
}

func TestAllocations(t *testing.T) {
	tab := table(t, Config{})
	r := work("c", 1)
	turn := func(o Outcome) {
		call := tab.Begin(0, r)
		call.End(0, o)
	}
	turn(Throttled)
	if n := testing.AllocsPerRun(100, func() { turn(Throttled); turn(Succeeded) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTable(b *testing.B) {
	tab := table(b, Config{})
	r := work("c", 1)
	b.ReportAllocs()
	for b.Loop() {
		call := tab.Begin(0, r)
		call.End(0, Throttled)
	}
}
