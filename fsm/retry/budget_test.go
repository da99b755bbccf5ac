package retry

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/fsm/window"
)

// standard is the rule of the incident report.
func standard() Rule {
	return Rule{
		MaxRetries: 3, MaxFraction: 2000, MinRequests: 50,
		Window: 5 * time.Minute, RetryAfter: time.Minute,
	}
}

func TestRule(t *testing.T) {
	for _, c := range []struct {
		name           string
		total, retries int64
		attempt        uint32
		want           Verdict
	}{
		{"S1-19_attempt_3_passes", 0, 0, 3, Admit},
		{"S1-19_attempt_4_is_refused", 0, 0, 4, Attempts},
		{"S1-19_any_higher_attempt", 0, 0, math.MaxUint32, Attempts},
		{"S1-19_attempts_before_the_budget", 100, 100, 4, Attempts},
		{"S1-20_exactly_20_percent_passes", 100, 20, 1, Admit},
		{"S1-20_the_first_value_above_is_refused", 100, 21, 1, Budget},
		{"S1-20_a_hair_above_is_refused", 1_000_000_004, 200_000_001, 0, Budget},
		{"S1-20_a_hair_below_passes", 1_000_000_006, 200_000_001, 0, Admit},
		{"S1-20_no_product_overflows", math.MaxInt64, math.MaxInt64/5 + 1, 0, Budget},
		{"S1-20_no_product_overflows_below", math.MaxInt64, math.MaxInt64 / 5, 0, Admit},
		{"S1-22_50_recorded_pass_whatever_they_are", 50, 50, 1, Admit},
		{"S1-22_51_recorded_above_the_fraction_refuse", 51, 11, 1, Budget},
		{"S1-22_51_recorded_within_the_fraction_pass", 51, 10, 1, Admit},
		{"S1-18_a_first_attempt_is_refused_too", 51, 51, 0, Budget},
		{"S1-33_ten_thousand_successes_pass", 10_000, 0, 0, Admit},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := standard().Decide(c.total, c.retries, c.attempt); got != c.want {
				t.Errorf("Decide(%d, %d, %d) = %v, want %v", c.total, c.retries, c.attempt, got, c.want)
			}
		})
	}
	t.Run("S1-18_the_scope_retries_spares_first_attempts", func(t *testing.T) {
		r := standard()
		r.Scope = Retries
		if got := r.Decide(51, 51, 0); got != Admit {
			t.Errorf("a first attempt: %v, want admit", got)
		}
		if got := r.Decide(51, 51, 1); got != Budget {
			t.Errorf("a retry: %v, want budget", got)
		}
		if got := r.Decide(0, 0, 4); got != Attempts {
			t.Errorf("a fourth retry: %v, want attempts", got)
		}
	})
	t.Run("S1-22_without_a_minimum", func(t *testing.T) {
		r := Rule{MaxRetries: 1}
		if got := r.Decide(0, 0, 1); got != Admit {
			t.Errorf("the first request: %v, want admit", got)
		}
		if got := r.Decide(1, 1, 0); got != Budget {
			t.Errorf("after one retry with a fraction of 0: %v, want budget", got)
		}
	})
}

// TestAllFailingClient sends a first attempt and three retries for every piece
// of work, and goes on whatever it is told.
func TestAllFailingClient(t *testing.T) {
	t.Run("S1-34_exactly_51_recorded", func(t *testing.T) {
		var counts window.Counts
		for i := range uint32(1000) {
			total, retries := counts.Sum(0)
			verdict := standard().Decide(total, retries, i%4)
			if want := total < 51; (verdict == Admit) != want {
				t.Fatalf("request %d with %d recorded: %v", i+1, total, verdict)
			}
			if verdict == Admit {
				counts.Add(0, 1, min(1, int64(i%4)))
			}
		}
		if total, _ := counts.Sum(0); total != 51 {
			t.Errorf("%d recorded, want 51", total)
		}
	})
	t.Run("S1-33_a_healthy_client_is_never_refused", func(t *testing.T) {
		total, retries := int64(0), int64(0)
		for i := range 10_000 {
			attempt := uint32(i%5) / 4
			if got := standard().Decide(total, retries, attempt); got != Admit {
				t.Fatalf("request %d of a client with one retry in five: %v", i, got)
			}
			total++
			retries += int64(attempt)
		}
	})
}

// headroom counts what the rule would admit, one retry after the other.
func headroom(r Rule, total, retries, most int64) int64 {
	for n := range most {
		if r.Decide(total+n, retries+n, 0) != Admit {
			return n
		}
	}
	return most
}

func TestHeadroom(t *testing.T) {
	for _, c := range []struct{ total, retries, want int64 }{
		{0, 0, 51},
		{50, 50, 1},
		{51, 51, 0},
		{51, 0, 13},
		{40, 40, 11},
		{1000, 200, 1},
		{1000, 201, 0},
		{1000, 0, 251},
		{1000, 100, 126},
	} {
		if got := standard().Headroom(c.total, c.retries); got != c.want {
			t.Errorf("Headroom(%d, %d) = %d, want %d", c.total, c.retries, got, c.want)
		}
	}
	t.Run("is_what_the_rule_admits", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := Rule{
				MaxRetries:  3,
				MaxFraction: rapid.OneOf(rapid.Int64Range(0, 9700), rapid.Just(int64(0))).Draw(t, "fraction"),
				MinRequests: rapid.Int64Range(0, 60).Draw(t, "min_requests"),
				Window:      300 * time.Second,
				MinRetries:  rapid.Int64Range(0, 3).Draw(t, "min_retries"),
				MinInterval: rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "min_interval"),
			}
			total := rapid.Int64Range(0, 300).Draw(t, "total")
			retries := rapid.Int64Range(0, total).Draw(t, "retries")
			const most = 20_000
			if got, want := r.Headroom(total, retries), headroom(r, total, retries, most); got != want {
				t.Fatalf("%+v.Headroom(%d, %d) = %d, want %d", r, total, retries, got, want)
			}
		})
	})
	t.Run("A17_arithmetic_of_any_size_is_exact", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := Rule{
				MaxFraction: rapid.Int64Range(0, Whole+1).Draw(t, "fraction"),
				MinRequests: rapid.Int64Range(0, math.MaxInt64).Draw(t, "min_requests"),
				Window:      time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "window")),
				MinRetries:  rapid.Int64Range(0, math.MaxInt64).Draw(t, "min_retries"),
				MinInterval: time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "min_interval")),
			}
			total := rapid.Int64Range(0, math.MaxInt64).Draw(t, "total")
			retries := rapid.Int64Range(0, total).Draw(t, "retries")
			if got, want := r.Headroom(total, retries), exactHeadroom(r, total, retries); got != want {
				t.Fatalf("%+v.Headroom(%d, %d) = %d, want %d", r, total, retries, got, want)
			}
		})
	})
}

// exactHeadroom is the formula of the design in math/big.
func exactHeadroom(r Rule, total, retries int64) int64 {
	number := big.NewInt
	times := func(a, b int64) *big.Int { return number(0).Mul(number(a), number(b)) }
	room := times(r.MaxFraction, total)
	room.Sub(room, times(retries, Whole))
	floor := number(0)
	if r.MinInterval > 0 {
		floor = times(r.MinRetries, int64(r.Window))
		floor.Div(floor, number(int64(r.MinInterval)))
	}
	if !floor.IsInt64() {
		floor = number(math.MaxInt64)
	}
	floor.Sub(floor, number(retries))
	if total > r.MinRequests && room.Sign() < 0 && floor.Sign() <= 0 {
		return 0
	}
	if r.MaxFraction >= Whole {
		return math.MaxInt64
	}
	most := number(0).Sub(number(r.MinRequests), number(total))
	if room.Div(room, number(Whole-r.MaxFraction)); room.Cmp(most) > 0 {
		most = room
	}
	if floor.Sub(floor, number(1)); floor.Cmp(most) > 0 {
		most = floor
	}
	if most.Add(most, number(1)); !most.IsInt64() {
		return math.MaxInt64
	}
	return most.Int64()
}

// TestFloor is the concurrent form of A17 in a window: 20 %, and at least 3.
func TestFloor(t *testing.T) {
	r := standard()
	r.MinRequests = 0
	r.MinRetries, r.MinInterval = 3, r.Window
	for _, c := range []struct {
		name                 string
		total, retries, want int64
	}{
		{"A17_the_fraction_where_it_is_more", 25, 0, 7},
		{"A17_the_floor_where_it_is_more", 2, 0, 3},
		{"A17_the_floor_without_a_request", 0, 0, 3},
		{"A17_the_floor_is_of_all_retries", 2, 2, 1},
		{"A17_a_spent_floor", 3, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := r.Headroom(c.total, c.retries); got != c.want {
				t.Errorf("Headroom(%d, %d) = %d, want %d", c.total, c.retries, got, c.want)
			}
			if got := headroom(r, c.total, c.retries, 100); got != c.want {
				t.Errorf("%d admitted after %d of %d, want %d", got, c.retries, c.total, c.want)
			}
		})
	}
	for _, c := range []struct {
		retries  int64
		interval time.Duration
		want     int64
	}{
		{10, time.Second, 3000},
		{1, 7 * time.Second, 42},
		{1, 301 * time.Second, 0},
		{0, time.Second, 0},
		{10, 0, 0},
		{-1, time.Second, 0},
		{math.MaxInt64, 1, math.MaxInt64},
	} {
		r.MinRetries, r.MinInterval = c.retries, c.interval
		if got := r.Floor(); got != c.want {
			t.Errorf("%d in %v: %d in a window, want %d", c.retries, c.interval, got, c.want)
		}
	}
}

func TestPart(t *testing.T) {
	t.Run("T49_a_small_headroom_admits_something", func(t *testing.T) {
		for _, c := range []struct {
			headroom int64
			nodes    int
			want     int64
		}{
			{0, 3, 0},
			{1, 3, 1},
			{2, 3, 1},
			{3, 3, 1},
			{4, 3, 2},
			{51, 3, 17},
			{51, 5, 11},
			{51, 1, 51},
			{-4, 3, 0},
			{51, 0, 51},
			{51, -1, 51},
			{math.MaxInt64, 2, math.MaxInt64/2 + 1},
		} {
			if got := Part(c.headroom, c.nodes); got != c.want {
				t.Errorf("Part(%d, %d) = %d, want %d", c.headroom, c.nodes, got, c.want)
			}
		}
	})
}

func TestFreesIn(t *testing.T) {
	const second = int64(time.Second)
	r := standard()
	var counts window.Counts
	counts.Add(0, 30, 30)
	counts.Add(100, 30, 30)
	for _, c := range []struct {
		now  int64
		want time.Duration
	}{
		// At 300 s the first thirty leave, and thirty are too few to count.
		{120 * second, 180 * time.Second},
		{300*second - 1, 1},
		{300 * second, 0},
		{900 * second, 0},
	} {
		if got := r.FreesIn(c.now, &counts); got != c.want {
			t.Errorf("FreesIn(%v) = %v, want %v", time.Duration(c.now), got, c.want)
		}
	}
	t.Run("A16_a_budget_recovers_exactly_when_it_said", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			var counts window.Counts
			for range rapid.IntRange(0, 12).Draw(t, "slices") {
				total := rapid.Int64Range(0, 40).Draw(t, "total")
				counts.Add(rapid.Int64Range(0, 400).Draw(t, "slice"), total, rapid.Int64Range(0, total).Draw(t, "retries"))
			}
			admits := func(at int64) bool {
				total, retries := counts.Sum(at)
				return r.Decide(total, retries, 0) == Admit
			}
			now := rapid.Int64Range(0, 500*second).Draw(t, "now")
			want, at := time.Duration(0), now/second
			for !admits(at) {
				at++
				want = time.Duration(at*second - now)
			}
			if got := r.FreesIn(now, &counts); got != want {
				t.Fatalf("FreesIn(%d) = %v, want %v", now, got, want)
			}
		})
	})
}

func TestVerdictsHaveNames(t *testing.T) {
	for v, want := range map[Verdict]string{Admit: "admit", Attempts: "attempts", Budget: "budget", 9: "unknown"} {
		if got := v.String(); got != want {
			t.Errorf("verdict %d is %q, want %q", v, got, want)
		}
	}
}

func TestScopesHaveNames(t *testing.T) {
	if Client.String() != "client" || Retries.String() != "retries" {
		t.Errorf("%v, %v", Client, Retries)
	}
}

func TestDecidingAllocatesNothing(t *testing.T) {
	r := standard()
	var counts window.Counts
	for slice := range int64(window.Slices) {
		counts.Add(slice, 1, 1)
	}
	got := testing.AllocsPerRun(100, func() {
		total, retries := counts.Sum(window.Slices)
		r.Decide(total, retries, 1)
		r.Headroom(total, retries)
		r.FreesIn(window.Slices*int64(time.Second), &counts)
	})
	if got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func BenchmarkDecide(b *testing.B) {
	r := standard()
	for b.Loop() {
		r.Decide(1000, 150, 1)
		r.Headroom(1000, 150)
	}
}
