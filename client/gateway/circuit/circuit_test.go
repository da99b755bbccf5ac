package circuit

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const second = time.Second

// fixed is a jitter of one second.
func fixed(time.Duration) time.Duration { return second }

func board(t testing.TB, c Config) *Board {
	t.Helper()
	if c.Jitter == nil {
		c.Jitter = fixed
	}
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// throttle makes n tries of one call that all end with 429, and returns the last verdict.
func throttle(b *Board, now time.Duration, tenant string, n int, hint time.Duration) (tries int, v Verdict) {
	call := b.Call(tenant, "d", Shed)
	for range n {
		var try *Try
		if try, v = call.Forward(now); try == nil {
			return tries, v
		}
		tries++
		try.Done(now, Throttled, hint)
	}
	return tries, call.Look(now)
}

// forward makes one try of a new call, which is left open; nil where it is refused.
func forward(b *Board, now time.Duration, tenant string) *Try {
	try, _ := b.Call(tenant, "d", Shed).Forward(now)
	return try
}

func TestOneCall(t *testing.T) {
	t.Run("S2-14_opens_after_the_third_429_of_a_call", func(t *testing.T) {
		b := board(t, Config{})
		if tries, v := throttle(b, 0, "a", 2, 0); tries != 2 || v.Action != Forward {
			t.Errorf("after two: %d tries, %+v", tries, v)
		}
		if tries, v := throttle(b, 0, "a", 5, 0); tries != 3 || v.Action != Shed || v.Left != 31*second {
			t.Errorf("after three: %d tries, %+v", tries, v)
		}
	})
	t.Run("S2-16_others_go_on", func(t *testing.T) {
		b := board(t, Config{})
		throttle(b, 0, "a", 3, 0)
		if forward(b, 0, "b") == nil {
			t.Error("another tenant is refused")
		}
		if try, _ := b.Call("a", "other", Shed).Forward(0); try == nil {
			t.Error("another deployment is refused")
		}
		if forward(b, 0, "a") != nil {
			t.Error("the tenant is not refused")
		}
	})
	t.Run("S2-17_says_how_much_longer", func(t *testing.T) {
		b := board(t, Config{})
		throttle(b, 0, "a", 3, 0)
		for _, at := range []time.Duration{0, second, 30 * second} {
			want := Verdict{Action: Shed, Left: 31*second - at, Key: Key{Tenant: "a", Deployment: "d"}}
			if v := b.Call("a", "d", Shed).Look(at); v != want {
				t.Errorf("at %v: %+v, want %+v", at, v, want)
			}
			if left := b.Left(at, Key{Tenant: "a", Deployment: "d"}); left != want.Left {
				t.Errorf("at %v: %v left", at, left)
			}
		}
	})
	t.Run("S3-24_a_hint_is_the_least", func(t *testing.T) {
		for hint, want := range map[time.Duration]time.Duration{
			0: 31 * second, 22 * second: 31 * second, 90 * second: 91 * second, 100 * time.Hour: time.Hour + second,
		} {
			b := board(t, Config{})
			if _, v := throttle(b, 0, "a", 3, hint); v.Left != want {
				t.Errorf("hint %v: %+v, want %v", hint, v, want)
			}
		}
	})
	t.Run("off", func(t *testing.T) {
		b := board(t, Config{CallThrottles: -1})
		if tries, v := throttle(b, 0, "a", 19, 0); tries != 19 || v.Action != Forward {
			t.Errorf("%d tries, %+v", tries, v)
		}
	})
}

func TestRate(t *testing.T) {
	send := func(b *Board, now time.Duration, ok, failed int, o Outcome) *Board {
		for i := range ok + failed {
			if try := forward(b, now, "a"); try != nil && i < ok {
				try.Done(now, Succeeded, 0)
			} else if try != nil {
				try.Done(now, o, 0)
			}
		}
		return b
	}
	for _, test := range []struct {
		name   string
		ok     int
		failed int
		o      Outcome
		open   bool
	}{
		{"S2-14_enough_of_many", 0, 20, Throttled, true},
		{"S2-14_too_few", 0, 19, Throttled, false},
		{"S2-21_other_errors", 0, 100, Other, false},
		{"overload", 0, 20, Overloaded, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := send(board(t, Config{}), 0, test.ok, test.failed, test.o)
			if open := forward(b, 0, "a") == nil; open != test.open {
				t.Errorf("open %v: %+v", open, b.Stats())
			}
			if other := forward(b, 0, "b") == nil; other != (test.o == Overloaded && test.open) {
				t.Errorf("for another tenant: open %v", other)
			}
		})
	}
	b := send(board(t, Config{}), 0, 0, 1, Throttled)
	send(b, 0, 11, 9, Throttled)
	if forward(b, 0, "a") == nil {
		t.Error("10 of 21 opened it")
	}
	send(b, 0, 0, 1, Throttled)
	if forward(b, 0, "a") != nil {
		t.Error("11 of 22 did not")
	}
	b = send(board(t, Config{}), 0, 0, 19, Throttled)
	send(b, 10*second, 0, 19, Throttled)
	if forward(b, 10*second, "a") == nil {
		t.Error("what has left the window counts")
	}
	b = send(board(t, Config{}), 0, 0, 5, Throttled)
	send(b, 6*second, 0, 10, Throttled)
	send(b, 11*second, 0, 4, Throttled)
	if forward(b, 11*second, "a") == nil {
		t.Error("14 in the window opened it")
	}
	send(b, 11*second, 0, 6, Throttled)
	if forward(b, 11*second, "a") != nil {
		t.Error("20 in the window did not")
	}
	b = send(board(t, Config{FractionBP: -1}), 0, 0, 1000, Throttled)
	if forward(b, 0, "a") == nil {
		t.Error("it opened although its rate never opens it")
	}
}

// TestRecheck: what waits does not pass after the circuit has opened.
func TestRecheck(t *testing.T) {
	t.Run("S2-24", func(t *testing.T) {
		b := board(t, Config{})
		waiting := make([]*Call, 100)
		for i := range waiting {
			waiting[i] = b.Call("a", "d", Shed)
			if v := waiting[i].Look(0); v.Action != Forward {
				t.Fatalf("%+v", v)
			}
		}
		early := forward(b, 0, "a")
		throttle(b, second, "a", 3, 0)
		for i, call := range waiting {
			if try, v := call.Forward(2 * second); try != nil || v.Left != 30*second {
				t.Fatalf("call %d passes: %+v", i, v)
			}
		}
		if early.Stands(2 * second) {
			t.Error("a try from before still stands")
		}
	})
	b := board(t, Config{})
	try := forward(b, 0, "a")
	if !try.Stands(0) {
		t.Error("a try of a closed circuit does not stand")
	}
	throttle(b, 0, "a", 3, 0)
	probe := forward(b, 31*second, "a")
	if !probe.Stands(90*second) || probe.Stands(91*second) || try.Stands(31*second) {
		t.Error("a probe stands until it is lost, and nothing beside it")
	}
	probe.Done(90*second, Succeeded, 0)
	if probe.Stands(90 * second) {
		t.Error("a try that has ended stands")
	}
}

// TestNobody: requests without a tenant share a circuit of their own, which is not the
// deployment's.
func TestNobody(t *testing.T) {
	b := board(t, Config{})
	throttle(b, 0, "", 3, 0)
	if forward(b, 0, "") != nil || forward(b, 0, "a") == nil {
		t.Error("the circuit of requests without a tenant is not theirs alone")
	}
	if try := forward(b, 31*second, ""); try == nil || forward(b, 31*second, "") != nil || b.Stats().Probes != 1 {
		t.Errorf("%+v, want one probe", b.Stats())
	}
}

func TestClasses(t *testing.T) {
	b := board(t, Config{})
	throttle(b, 0, "a", 3, 0)
	for _, want := range []Action{Defer, Shed} {
		if try, v := b.Call("a", "d", want).Forward(0); try != nil || v.Action != want || v.Left != 31*second {
			t.Errorf("%+v, want action %d", v, want)
		}
	}
	if s := b.Stats(); s.Deferred != 1 || s.Shed != 1 {
		t.Errorf("%+v", s)
	}
}

// TestIdle: what is not used goes, and what is open stays.
func TestIdle(t *testing.T) {
	t.Run("S2-27", func(t *testing.T) {
		b := board(t, Config{Keys: 16})
		throttle(b, 0, "open", 3, 0)
		for n := range 1000 {
			throttle(b, second, fmt.Sprint(n), 1, 0)
		}
		if s := b.Stats(); s.Keys != 16 || s.Open != 1 || s.Untracked != 0 {
			t.Errorf("%+v, want 16 keys, one of them open", s)
		}
		if forward(b, second, "open") != nil {
			t.Error("an open circuit made room")
		}
		throttle(b, 31*second+10*time.Minute, "new", 1, 0)
		if s := b.Stats(); s.Keys != 1 || s.Open != 0 {
			t.Errorf("%+v, want the new one", s)
		}
	})
	b := board(t, Config{Idle: second})
	throttle(b, 0, "told to wait", 3, time.Hour)
	throttle(b, 50*time.Minute, "another", 1, 0)
	if forward(b, 50*time.Minute, "told to wait") != nil {
		t.Error("what is open for an hour was forgotten because nobody asked for it")
	}
	b = board(t, Config{Keys: 16})
	for n := range 20 {
		throttle(b, 0, fmt.Sprint(n), 3, 0)
	}
	if s := b.Stats(); s.Keys != 16 || s.Open != 16 || s.Untracked == 0 {
		t.Errorf("%+v, want 16 open and the rest untracked", s)
	}
	if forward(b, 0, "0") != nil || forward(b, 0, "19") == nil {
		t.Error("who came first is not refused, or who came last is")
	}
}

func TestJitter(t *testing.T) {
	t.Run("S2-10", func(t *testing.T) {
		seen := make(map[time.Duration]bool)
		for range 100 {
			b, err := New(Config{})
			if err != nil {
				t.Fatal(err)
			}
			_, v := throttle(b, 0, "a", 3, 0)
			if v.Left < 30*second || v.Left > 33*second {
				t.Fatalf("%+v, want 30 to 33 s", v)
			}
			seen[v.Left] = true
		}
		if len(seen) < 90 {
			t.Errorf("%d different waits of 100", len(seen))
		}
	})
	for _, draws := range []time.Duration{-time.Hour, time.Hour} {
		b := board(t, Config{Jitter: func(time.Duration) time.Duration { return draws }})
		if _, v := throttle(b, 0, "a", 3, 0); v.Left < 30*second || v.Left > 33*second {
			t.Errorf("a jitter of %v: %+v", draws, v)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{CallThrottles: -2}, "call throttles: -2, 1 to 100"},
		{Config{Least: -1}, "least: -1, 1 to 1048576"},
		{Config{FractionBP: 10_001}, "fraction: 10001, 1 to 10000"},
		{Config{Window: 1}, "window: 1ns, 1s to 1h0m0s"},
		{Config{Open: 2 * time.Hour}, "open: 2h0m0s, 1s to 1h0m0s"},
		{Config{HintMax: second}, "hint max: 1s, 30s to 24h0m0s"},
		{Config{JitterMax: -1}, "jitter max: -1ns, 1ms to 10m0s"},
		{Config{ProbeMax: 1}, "probe max: 1ns, 1s to 1h0m0s"},
		{Config{Keys: 1}, "keys: 1, 16 to 1048576"},
		{Config{Idle: 1}, "idle: 1ns, 1s to 24h0m0s"},
	} {
		if _, err := New(test.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q, want %q", err, test.want)
		}
	}
}

// TestCrowd: many at once find one probe.
func TestCrowd(t *testing.T) {
	b := board(t, Config{})
	throttle(b, 0, "a", 3, 0)
	var probes atomic.Int64
	var crowd sync.WaitGroup
	for range 8 {
		crowd.Go(func() {
			for range 200 {
				if forward(b, 31*second, "a") != nil {
					probes.Add(1)
				}
			}
		})
	}
	crowd.Wait()
	if probes.Load() != 1 {
		t.Errorf("%d probes", probes.Load())
	}
}

func BenchmarkForward(b *testing.B) {
	board := board(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		try, _ := board.Call("tenant", "deployment", Shed).Forward(0)
		try.Done(0, Succeeded, 0)
	}
}
