package pace_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/pace"
)

const (
	second = bucket.Instant(time.Second)
	whole  = pace.Whole
)

// oracle is the key's time since the beginning, step by step in big numbers: speed
// times length of every interval, added up, and rounded down once.
func oracle(p pace.Pace, now bucket.Instant) *big.Int {
	sum, at, speed := new(big.Int), p.Opens, p.Start
	for at < now {
		length := now - at
		if speed < whole {
			length = min(length, bucket.Instant(p.Interval))
		}
		one := big.NewInt(int64(length))
		sum.Add(sum, one.Mul(one, big.NewInt(speed)))
		at += length
		speed = min(whole, speed+p.Step)
	}
	return sum.Quo(sum, big.NewInt(whole))
}

// drawPace draws a pace of at most a few hundred steps, so that the oracle can take
// each of them.
func drawPace(t *rapid.T) pace.Pace {
	p := pace.Pace{
		Opens: bucket.Instant(rapid.Int64Range(0, int64(pace.MaxInstant)).Draw(t, "opens")),
		Start: rapid.Int64Range(1, whole).Draw(t, "start"),
	}
	if p.Start < whole {
		p.Step = rapid.Int64Range(3_000, whole).Draw(t, "step")
		p.Interval = time.Duration(rapid.OneOf(
			rapid.Int64Range(1, 50), rapid.Int64Range(1, int64(pace.MaxInterval)),
			rapid.Just(int64(pace.MaxInterval)), rapid.Just(int64(time.Second)),
		).Draw(t, "interval"))
	}
	made, err := pace.New(p)
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	return made
}

// drawNear draws an instant, often one where something happens.
func drawNear(t *rapid.T, p pace.Pace, what string) bucket.Instant {
	most := int64(math.MaxInt64)
	around := rapid.Int64Range(-40, 40).Draw(t, what+" around")
	steps := rapid.Int64Range(0, 400).Draw(t, what+" steps")
	at := rapid.SampledFrom([]int64{
		0, int64(p.Opens), int64(p.WholeAt()), most,
		int64(p.Opens) + steps*int64(p.Interval), int64(p.Opens) + steps*int64(p.Interval)/7,
	}).Draw(t, what)
	if around > 0 && at > most-around {
		return bucket.Instant(most)
	}
	return bucket.Instant(max(0, at+around))
}

func TestTheOracleAgrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPace(t)
		at := drawNear(t, p, "at")
		if got, want := p.Effective(0, at), oracle(p, at); !want.IsInt64() || got != want.Int64() {
			t.Fatalf("%+v at %d: got %d, want %v", p, at, got, want)
		}
	})
}

func TestG9ItDoesNotMatterHowTimeIsCut(t *testing.T) {
	t.Parallel()
	t.Run("G9", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawPace(t)
			a, b, c := drawNear(t, p, "a"), drawNear(t, p, "b"), drawNear(t, p, "c")
			a, b = min(a, b), max(a, b)
			b, c = min(b, c), max(b, c)
			a, b = min(a, b), max(a, b)
			if once, twice := p.Effective(a, c), p.Effective(a, b)+p.Effective(b, c); once != twice {
				t.Fatalf("%+v from %d over %d to %d: %d at once, %d in two", p, a, b, c, once, twice)
			}
		})
	})
}

func TestG1ItIsNeverFasterThanRealTime(t *testing.T) {
	t.Parallel()
	t.Run("G1", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawPace(t)
			a, b := drawNear(t, p, "a"), drawNear(t, p, "b")
			a, b = min(a, b), max(a, b)
			switch got := p.Effective(a, b); {
			case got < 0 || got > int64(b-a):
				t.Fatalf("%+v from %d to %d: %d of %d", p, a, b, got, b-a)
			case b <= p.Opens && got != 0:
				t.Fatalf("%+v from %d to %d: %d passed while it was closed", p, a, b, got)
			case a >= p.WholeAt() && got != int64(b-a):
				t.Fatalf("%+v from %d to %d: %d of %d, and it is whole", p, a, b, got, b-a)
			}
		})
	})
}

func TestG7InvertIsTheFirstInstant(t *testing.T) {
	t.Parallel()
	t.Run("G7", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawPace(t)
			from := drawNear(t, p, "from")
			effective := rapid.OneOf(
				rapid.Int64Range(0, 100), rapid.Int64Range(0, int64(time.Hour)), rapid.Int64Range(0, math.MaxInt64),
				rapid.Just(p.Effective(from, math.MaxInt64)),
			).Draw(t, "effective")
			at, ok := p.Invert(from, effective)
			if !ok {
				if p.Effective(from, math.MaxInt64) >= effective {
					t.Fatalf("%+v: %d from %d on: got never", p, effective, from)
				}
				return
			}
			if got := p.Effective(from, at); got < effective {
				t.Fatalf("%+v: %d from %d on: got %d, when %d have passed", p, effective, from, at, got)
			}
			if at > from && p.Effective(from, at-1) >= effective {
				t.Fatalf("%+v: %d from %d on: got %d, which is late", p, effective, from, at)
			}
		})
	})
}

func TestSteps(t *testing.T) {
	t.Parallel()
	// Closed until 10 s, then a quarter more each second.
	p, err := pace.New(pace.Pace{Opens: 10 * second, Start: whole / 4, Step: whole / 4, Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.WholeAt(); got != 13*second {
		t.Errorf("whole at %d, want 13 s", got)
	}
	for _, c := range []struct{ at, passed, speed int64 }{
		{0, 0, 250_000},
		{10_000, 0, 250_000},
		{10_999, 249, 250_000},
		{11_000, 250, 500_000},
		{12_000, 750, 750_000},
		{12_500, 1_125, 750_000},
		{13_000, 1_500, whole},
		{14_000, 2_500, whole},
		{1_000_000, 988_500, whole},
	} {
		at := bucket.Instant(c.at * int64(time.Millisecond))
		if got := p.Effective(0, at) / int64(time.Millisecond); got != c.passed {
			t.Errorf("at %d ms: %d ms have passed, want %d", c.at, got, c.passed)
		}
		if got := p.At(at); got != c.speed {
			t.Errorf("at %d ms: the speed is %d, want %d", c.at, got, c.speed)
		}
	}
	if got := p.Effective(12*second, 11*second); got != 0 {
		t.Errorf("backwards: got %d, want 0", got)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		p  pace.Pace
		ok bool
	}{
		"whole":                {pace.Pace{Start: whole}, true},
		"slow":                 {pace.Pace{Start: 1, Step: 1, Interval: pace.MaxInterval}, true},
		"none":                 {pace.Pace{}, false},
		"opens before time":    {pace.Pace{Opens: -1, Start: whole}, false},
		"opens after time":     {pace.Pace{Opens: pace.MaxInstant + 1, Start: whole}, false},
		"faster than real":     {pace.Pace{Start: whole + 1}, false},
		"whole with steps":     {pace.Pace{Start: whole, Step: 1, Interval: 1}, false},
		"no step":              {pace.Pace{Start: 1, Interval: 1}, false},
		"large step":           {pace.Pace{Start: 1, Step: whole + 1, Interval: 1}, false},
		"no interval":          {pace.Pace{Start: 1, Step: 1}, false},
		"interval over a day":  {pace.Pace{Start: 1, Step: 1, Interval: pace.MaxInterval + 1}, false},
		"interval of a moment": {pace.Pace{Start: 1, Step: 1, Interval: 1}, true},
	} {
		if _, err := pace.New(c.p); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want ok %v", name, err, c.ok)
		}
	}
}

// TestSlowest takes a pace whose million steps of a day are beyond the end of time.
func TestSlowest(t *testing.T) {
	t.Parallel()
	p, err := pace.New(pace.Pace{Opens: pace.MaxInstant, Start: 1, Step: 1, Interval: pace.MaxInterval})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.WholeAt(); got != pace.Never {
		t.Errorf("whole at %d, want never", got)
	}
	all := p.Effective(0, math.MaxInt64)
	if want := oracle(p, math.MaxInt64); all != want.Int64() {
		t.Errorf("to the end of time: got %d, want %v", all, want)
	}
	if at, ok := p.Invert(0, all); !ok || p.Effective(0, at-1) >= all {
		t.Errorf("inverse of all time: got %d, %v", at, ok)
	}
	if at, ok := p.Invert(0, all+1); ok {
		t.Errorf("inverse of more than all time: got %d, want never", at)
	}
}

func BenchmarkInvert(b *testing.B) {
	p, err := pace.New(pace.Pace{Opens: 10 * second, Start: 50_000, Step: 47_500, Interval: 3 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := p.Invert(0, int64(7*time.Second)); !ok {
			b.Fatal("never")
		}
	}
}
