package fsm_test

import (
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// inUse is how many slots of a key are held.
func inUse(t *testing.T, d *fsmtest.Driver, at time.Duration, limit, key string) int64 {
	t.Helper()
	in, err := d.Inspect(bucket.Instant(at), limit, key)
	if err != nil {
		t.Fatal(err)
	}
	return in.Buckets[0].Open
}

// TestSlotsComeBackFromEverywhere lets ten thousand holders stop at a random point:
// before they asked, without a word, at a release, at a settle, after a renewal, with
// their session, or twice. In the end nothing is held, and at no time more than may be.
func TestSlotsComeBackFromEverywhere(t *testing.T) {
	t.Parallel()
	got := abandon(t, 10_000)
	for _, id := range []string{"A13", "S2-23"} {
		t.Run(id, func(t *testing.T) {
			if got.taken == 0 || got.freed != got.taken {
				t.Errorf("%d slots were taken, %d came back", got.taken, got.freed)
			}
			if c := got.Counts(); c.OpenLeases != 0 || c.Keys != 0 || c.Sessions != 0 {
				t.Errorf("%+v are left", c)
			}
		})
	}
	t.Run("A13_never_more_than_four", func(t *testing.T) {
		if got.most != 4 {
			t.Errorf("at most %d were held at once, want 4", got.most)
		}
	})
}

// holders are what holders of the slots of one key did.
type holders struct {
	*fsmtest.Driver
	at                 time.Duration
	taken, freed, most int64
}

// apply applies an entry, without the driver's recount after each.
func (h *holders) apply(t *testing.T, operations ...*logv1.Operation) {
	t.Helper()
	results, effects := h.Apply(h.Index()+1, &logv1.Entry{Stamp: int64(h.at), Operations: operations})
	for _, r := range results {
		if a := r.GetAcquire(); a.GetGranted() {
			h.taken += a.GetCharges()[0].GetAmount()
		}
	}
	h.freed += slotsFreed(t, effects)
	used := inUse(t, h.Driver, h.at, "gate", "k")
	h.most = max(h.most, used)
	if used != h.taken-h.freed {
		t.Fatalf("at %v: %d slots are held, %d taken and %d freed", h.at, used, h.taken, h.freed)
	}
}

// abandon has so many holders of four slots, one after another.
func abandon(t *testing.T, many int) *holders {
	t.Helper()
	h := &holders{Driver: fsmtest.New(t)}
	h.At(0, fsmtest.Apply(fsmtest.Slots("gate", 4)))
	world := fsmtest.Seeded(13)
	for i := range many {
		h.at += time.Duration(world.Choose(300)) * time.Millisecond
		name, connection := fmt.Sprint("h", i), uint64(i)
		session := fsmtest.LeaseID(fmt.Sprint("s", world.Choose(20)))
		acquire := fsmtest.Operation(&logv1.Acquire{
			LeaseId: fsmtest.LeaseID(name), Track: true, Session: session, Connection: connection,
			Charges: []*logv1.Charge{fsmtest.Charge("gate", "k", "slots", int64(1+world.Choose(2)))},
		})
		end := &logv1.EndSession{Session: session, Connection: connection, Grace: int64(time.Second)}
		stop := [][]*logv1.Operation{
			{},
			{fsmtest.Release(name)},
			{fsmtest.Settle(name, "slots", 1)},
			{fsmtest.Release(name), fsmtest.Release(name)},
			{fsmtest.Renew(name, 1, time.Minute)},
			{fsmtest.Operation(end)},
		}[world.Choose(6)]
		h.apply(t, append([]*logv1.Operation{acquire}, stop...)...)
	}
	for range 2 {
		h.at += 2 * time.Minute
		h.apply(t)
	}
	h.At(h.at)
	return h
}

func slotsFreed(t *testing.T, effects []effect.Effect) int64 {
	t.Helper()
	sum := int64(0)
	for _, e := range effects {
		if e.Kind == effect.SlotsFreed {
			var n int64
			if _, err := fmt.Sscan(e.Value, &n); err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// TestSlotsSayWhen: a caller alone that waits exactly as long as a denial says is
// granted, and a millisecond earlier it is not, in whatever order leases end, are
// renewed and limits change. What is given back before only makes it earlier.
func TestSlotsSayWhen(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("G7_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			world := fsmtest.Seeded(seed)
			d := fsmtest.New(t)
			d.At(0, fsmtest.Apply(fsmtest.Slots("gate", 10)))
			at := time.Duration(0)
			for i := range 300 {
				at += time.Duration(world.Choose(100)) * time.Millisecond
				d.At(at, fsmtest.Track(fmt.Sprint(i), fsmtest.Charge("gate", "k", "slots", int64(1+world.Choose(4)))))
				renewed := fmt.Sprint(max(0, i-world.Choose(8)))
				d.At(at, fsmtest.Renew(renewed, uint64(i+1), time.Duration(1+world.Choose(20_000))*time.Millisecond))
				if world.Choose(16) == 0 {
					d.At(at, fsmtest.Apply(fsmtest.Slots("gate", int64(4+world.Choose(8)))))
				}
				ask := &logv1.Acquire{Charges: []*logv1.Charge{fsmtest.Charge("gate", "k", "slots", int64(1+world.Choose(4)))}}
				waits(t, d, at, ask)
			}
		})
	}
}

func waits(t *testing.T, d *fsmtest.Driver, at time.Duration, ask *logv1.Acquire) {
	t.Helper()
	answer, err := d.Peek(bucket.Instant(at), ask)
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetGranted() {
		return
	}
	wait := time.Duration(answer.GetDenials()[0].GetRetryAfter())
	if wait <= 0 || wait%time.Millisecond != 0 {
		t.Fatalf("%v at %v: wait %v", ask, at, wait)
	}
	for _, then := range []struct {
		wait time.Duration
		want bool
	}{{wait - time.Millisecond, false}, {wait, true}} {
		later, err := d.Peek(bucket.Instant(at+then.wait), ask)
		if err != nil || later.GetGranted() != then.want {
			t.Fatalf("%v at %v, told to wait %v: after %v %v, %v", ask, at, wait, then.wait, later, err)
		}
	}
}

// TestManyAskForTenSlots: two thousand acquires at once, in entries as they come, and
// exactly ten are granted; also where the key was never seen.
func TestManyAskForTenSlots(t *testing.T) {
	t.Parallel()
	t.Run("A14", func(t *testing.T) {
		t.Parallel()
		d := fsmtest.New(t)
		d.At(0, fsmtest.Apply(fsmtest.Slots("gate", 10)))
		granted := 0
		for batch := range 4 {
			var operations []*logv1.Operation
			for i := range 500 {
				operations = append(operations, fsmtest.Track(fmt.Sprint(batch, ".", i), fsmtest.Charge("gate", "k", "slots", 1)))
			}
			for _, r := range d.At(time.Second, operations...) {
				if r.GetAcquire().GetGranted() {
					granted++
				}
			}
		}
		if granted != 10 {
			t.Errorf("%d are granted, want 10", granted)
		}
	})
}

// TestAllLimitsAreLookedAt: a team's own large limit is one thing, the provider's
// another; who is refused is told by which.
func TestAllLimitsAreLookedAt(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"S1-06", "S1-16"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			d := fsmtest.New(t)
			d.At(0, fsmtest.Apply(
				fsmtest.Keyed("team", fsmtest.Dimension(t, "tokens", "1000000/1s", 1_000_000)),
				fsmtest.Keyed("deployment", fsmtest.Dimension(t, "tokens", "100/1s", 100)),
				fsmtest.Slots("gate", 1)))
			ask := func(name string, tokens int64) *logv1.AcquireResult {
				return d.Acquire(0, fsmtest.Track(name, fsmtest.Charge("team", "a", "tokens", tokens),
					fsmtest.Charge("deployment", "gpt", "tokens", tokens), fsmtest.Charge("gate", "a", "slots", 1)))
			}
			if got := ask("1", 80); !got.GetGranted() {
				t.Fatalf("%v, want a grant", got)
			}
			got := ask("2", 80)
			if got.GetGranted() || len(got.GetDenials()) != 2 {
				t.Fatalf("%v, want denials of the deployment and of the gate", got)
			}
			if first, second := got.GetDenials()[0], got.GetDenials()[1]; first.GetLimit() != "gate" ||
				first.GetReason() != logv1.Reason_REASON_CONCURRENCY || second.GetLimit() != "deployment" ||
				second.GetReason() != logv1.Reason_REASON_RATE {
				t.Errorf("%v, want gate before deployment: the longest wait first", got.GetDenials())
			}
			if left := d.Level(0, "team", "a", "tokens"); left != 999_920 {
				t.Errorf("the team has %d left, want 999920: a denial takes nothing", left)
			}
		})
	}
}
