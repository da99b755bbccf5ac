package fsm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// hearing is a world in which providers speak.
func hearing(seed uint64, tame bool) *fsmtest.World {
	world := fsmtest.Seeded(seed)
	world.Tame, world.Feedback = tame, true
	return world
}

// TestG1UnderPace: pauses, ramps and decreases that begin, meet and end in the middle of
// changes of limits never give a bucket more than its burst and its rates.
func TestG1UnderPace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("G1_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			m := fsm.New()
			world := hearing(seed, true)
			bound := fsmtest.NewBound(t)
			for i := range 300 {
				entry := world.Entry()
				results, _ := m.Apply(m.Index()+1, entry)
				bound.Entry(entry, results)
				if i%50 == 49 {
					m = fsmtest.Restored(t, m)
				}
			}
		})
	}
}

// TestG7UnderPace: what a paused or slowed key says of the time to come back is
// exact, to the millisecond.
func TestG7UnderPace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("G7_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			m := fsm.New()
			world := hearing(seed, false)
			for range 120 {
				m.Apply(m.Index()+1, world.Entry())
				op := world.Operation()
				if op.GetAcquire() == nil {
					continue
				}
				answer, err := m.Peek(0, op.GetAcquire())
				if err == nil && !answer.GetGranted() {
					honest(t, m, op, answer)
				}
			}
		})
	}
}

// TestG9UnderPace: a snapshot after every entry, in the middle of pauses and ramps,
// makes no difference, and a recount agrees with the hash.
func TestG9UnderPace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("G9_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			d := fsmtest.WithShadow(t)
			world := hearing(seed, false)
			for range 200 {
				d.Entry(world.Entry())
			}
		})
	}
}

// TestA01UnderPace: how often somebody looks at a key does not matter, in which steps
// time passes does not, and neither does a stamp that comes late.
func TestA01UnderPace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("A01_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			world := hearing(seed, true)
			limit := world.Choose(1 << 20)
			once, often := fsm.New(), fsm.New()
			one := fsmtest.Limit("l", fsmtest.Dimension(t, "requests", "7/1s", 1000))
			one.Ramp = int64(time.Duration(limit%100) * time.Second)
			apply(once, fsmtest.Apply(one))
			apply(often, fsmtest.Apply(proto.CloneOf(one)))
			now := time.Duration(0)
			for range 30 {
				step := micros(world, 20*time.Second) + time.Microsecond
				// The one looks at the end, the other one many times on the way, and at what
				// has been.
				for range world.Choose(6) {
					at := now + micros(world, step) - micros(world, time.Second)
					nudge := fsmtest.Operation(&logv1.Feedback{Signals: []*logv1.Signal{{
						Limit: "l", Kind: logv1.Signal_KIND_OBSERVED,
						Observed: []*logv1.Observed{{Dimension: "requests", Remaining: 1000}},
					}}})
					often.Apply(often.Index()+1, &logv1.Entry{Stamp: int64(at), Operations: []*logv1.Operation{nudge}})
				}
				now += step
				signal := fsmtest.Operation(&logv1.Feedback{Signals: []*logv1.Signal{{
					Limit: "l", Kind: logv1.Signal_Kind(1 + world.Choose(3)),
					Wait: int64(world.Choose(3)) * int64(time.Second) * int64(world.Choose(8)),
				}}})
				for _, m := range []*fsm.Machine{once, often} {
					m.Apply(m.Index()+1, &logv1.Entry{Stamp: int64(now), Operations: []*logv1.Operation{signal}})
				}
				ahead := bucket.Instant(now + micros(world, time.Minute))
				want, _ := once.Inspect(ahead, "l", "")
				got, _ := often.Inspect(ahead, "l", "")
				if w, g := want.Buckets[0].Level, got.Buckets[0].Level; w != g {
					t.Fatalf("at %v, seen at %v: %d tokens, looked at often %d", now, time.Duration(ahead), w, g)
				}
			}
		})
	}
}

// TestAHerdOfReports: two thousand gateways get the same 429. The rate falls once, one
// event says so, all callers are told when to come back, and then they do not come
// through all at once.
func TestAHerdOfReports(t *testing.T) {
	t.Parallel()
	d := fsmtest.New(t)
	one := fsmtest.Limit("l", fsmtest.Dimension(t, "requests", "1000/1s", 1000))
	one.Ramp = int64(20 * time.Second)
	d.At(0, fsmtest.Apply(one))
	ask := fsmtest.Operation(&logv1.Acquire{Charges: []*logv1.Charge{fsmtest.Charge("l", "", "requests", 1)}})
	var told []effect.Effect
	for i := range 2000 {
		wait := 22*time.Second - time.Duration(i)*time.Millisecond/10
		results := d.At(time.Second+time.Duration(i)*time.Millisecond/10, fsmtest.Operation(&logv1.Feedback{
			Client: fmt.Sprint("gw-", i), Signals: []*logv1.Signal{{
				Limit: "l", Kind: logv1.Signal_KIND_THROTTLED, Wait: int64(wait), Reason: "rate_limit_exceeded",
			}},
		}))
		told = append(told, d.Effects...)
		if c := results[0].GetFeedback().GetSignals()[0]; c.GetPaused() != int64(wait) || c.GetPace() != 50_000 {
			t.Fatalf("report %d: %v, want paused for %v, then a twentieth", i, c, wait)
		}
	}
	if len(told) != 1 || told[0].Kind != effect.LimitPaused || told[0].Client != "gw-0" {
		t.Fatalf("%d events: %v, want the one pause", len(told), told)
	}
	t.Run("S3-24", func(t *testing.T) {
		for i := range 2000 {
			at := 2*time.Second + time.Duration(i)*10*time.Millisecond
			answer, err := d.Peek(bucket.Instant(at), ask.GetAcquire())
			if err != nil || answer.GetGranted() || answer.GetDenials()[0].GetReason() != logv1.Reason_REASON_PAUSED {
				t.Fatalf("at %v: %v, %v; want paused", at, answer, err)
			}
			if back := at + time.Duration(answer.GetDenials()[0].GetRetryAfter()); back < 23*time.Second {
				t.Fatalf("at %v: told to come back at %v, before the provider's wait is over", at, back)
			}
		}
	})
	t.Run("S3-29", func(t *testing.T) {
		granted := make([]int, 25)
		for at := 23 * time.Second; at < 48*time.Second; at += 10 * time.Millisecond {
			for d.Acquire(at, ask).GetGranted() {
				granted[(at-23*time.Second)/time.Second]++
			}
		}
		for second, count := range granted {
			want := min(1000, 50+second*95/2)
			if count < want-1 || count > want+1 {
				t.Errorf("second %d: %d granted, want %d", second, count, want)
			}
		}
	})
}

// TestG10ControlsAreBounded: there is a most of keys under control, and nothing of an
// operation is done where it does not fit.
func TestG10ControlsAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		d := fsmtest.New(t)
		d.At(0, fsmtest.Apply(fsmtest.Keyed("l", fsmtest.Dimension(t, "requests", "1/1s", 10))))
		paused := func(first, last int) *logv1.Operation {
			op := &logv1.Feedback{}
			for i := first; i < last; i++ {
				op.Signals = append(op.Signals, &logv1.Signal{
					Limit: "l", Key: fmt.Sprint("k", i), Kind: logv1.Signal_KIND_THROTTLED, Wait: int64(time.Hour),
				})
			}
			return fsmtest.Operation(op)
		}
		for first := 0; first < 10_000; first += 50 {
			d.At(time.Second, paused(first, first+50))
		}
		before := d.Hash()
		refused := d.At(time.Second, paused(9_999, 10_001))[0].GetRefusal()
		if refused.GetCause() != logv1.Refusal_CAUSE_REPORT_LIMIT || !strings.Contains(refused.GetMessage(), "10000") {
			t.Errorf("one more: %v, want a refusal with the bound", refused)
		}
		if d.Hash() != before || d.Counts().Controlled != 10_000 {
			t.Errorf("it changed something: %d are under control", d.Counts().Controlled)
		}
		d.At(time.Second, paused(0, 50))
		// When it is over they are as any others, and go.
		d.At(time.Hour + 2*time.Second)
		d.At(2 * time.Hour)
		if n := d.Counts(); n.Controlled != 0 || n.Keys != 0 {
			t.Errorf("after the pause: %+v, want none", n)
		}
	})
}

// micros is a random time below most, in whole microseconds, which fit an int
// everywhere.
func micros(world *fsmtest.World, most time.Duration) time.Duration {
	return time.Duration(world.Choose(int(most/time.Microsecond))) * time.Microsecond
}
