package fsm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/fsmtest"
	"github.com/quorlease/quorlease/fsm/shares"
)

const (
	sharedRate  = 10
	sharedBurst = 600
)

// sharedLimit is 10/s, burst 600, shared while nobody answers.
func sharedLimit(t testing.TB) *logv1.Limit {
	limit := fsmtest.Limit("shared", fsmtest.Dimension(t, "requests", "10/1s", sharedBurst))
	limit.OnQuorumLoss = logv1.OnQuorumLoss_ON_QUORUM_LOSS_SHARE
	return limit
}

// fleet is sessions that share a limit.
type fleet struct {
	*fsmtest.Driver
	now  time.Duration
	held []shares.Promise
	// admitted is what each has admitted by itself, granted what the authority has.
	admitted []int64
	granted  int64
	serial   int
}

func newFleet(t testing.TB, d *fsmtest.Driver, sessions int) *fleet {
	t.Helper()
	f := &fleet{
		Driver: d, held: make([]shares.Promise, sessions), admitted: make([]int64, sessions),
	}
	f.At(0, fsmtest.Apply(sharedLimit(t)))
	for range 4 {
		f.refresh()
	}
	return f
}

func name(i int) string { return fmt.Sprint("s", i) }

// refresh is a second in which every session refreshes.
func (f *fleet) refresh() {
	f.T.Helper()
	f.now += time.Second
	held := make([]*logv1.HeldShare, len(f.held))
	for i, p := range f.held {
		held[i] = fsmtest.Held(name(i), "shared", p.Version)
	}
	result := f.At(f.now, fsmtest.Refresh(held...))[0]
	for i, p := range result.GetShares().GetPromises() {
		f.held[i] = shares.Promise{Version: p.GetVersion(), PPM: p.GetPpm()}
	}
}

// take asks the authority for n, and says whether it had them.
func (f *fleet) take(n int64) bool {
	f.T.Helper()
	f.serial++
	op := fsmtest.Acquire(fmt.Sprint("l", f.serial), fsmtest.Charge("shared", "", "requests", n))
	ok := f.Acquire(f.now, op).GetGranted()
	if ok {
		f.granted += n
	}
	return ok
}

// drain takes everything, in pieces.
func (f *fleet) drain() {
	for n := int64(sharedBurst); n > 0; n /= 2 {
		for f.take(n) {
		}
	}
}

// outage is a time in which nobody stamps, and each session admits a part of what its
// share earns, from an empty bucket.
func (f *fleet) outage(length time.Duration, used func(i int, most int64) int64) {
	for i, p := range f.held {
		f.admitted[i] += used(i, int64(length.Seconds())*sharedRate*p.PPM/shares.Whole)
	}
	f.now += length
	f.At(f.now)
}

func (f *fleet) report(i int) *logv1.Booking {
	f.T.Helper()
	if f.admitted[i] == 0 {
		return nil
	}
	op := fsmtest.Admitted(name(i), fsmtest.Count("shared", "", "requests", f.admitted[i]))
	return f.At(f.now, op)[0].GetAdmitted().GetBookings()[0]
}

func (f *fleet) level() (level, debt int64) {
	in, err := f.Inspect(0, "shared", "")
	if err != nil {
		f.T.Fatal(err)
	}
	return in.Buckets[0].Level, in.Buckets[0].Debt
}

// TestOutage: what is refilled while nobody answers belongs to those who were cut off,
// until they have said what they did with it.
func TestOutage(t *testing.T) {
	t.Parallel()
	all := func(_ int, most int64) int64 { return most }
	t.Run("T51_the_refill_of_an_outage_is_withheld", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t, fsmtest.WithShadow(t), 2)
		f.drain()
		f.outage(30*time.Second, all)
		if f.take(1) {
			t.Fatal("what those who were cut off have spent is granted again")
		}
		// Each used its half, no more: nothing is owed, nothing comes back.
		for i := range 2 {
			if b := f.report(i); b.GetTokens() != 150 || b.GetDebt() != 0 {
				t.Errorf("booked %v, want 150 and no debt", b)
			}
		}
		if level, debt := f.level(); level != 0 || debt != 0 {
			t.Errorf("level %d and debt %d, want none", level, debt)
		}
		f.refresh()
		if !f.take(sharedRate) {
			t.Error("refill does not go on after the outage")
		}
	})
	t.Run("T51_what_was_not_used_comes_back", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t, fsmtest.WithShadow(t), 2)
		f.drain()
		f.outage(30*time.Second, func(i int, most int64) int64 { return most / int64(3*i+1) })
		f.report(1)
		if level, _ := f.level(); level != 113 {
			t.Errorf("level %d, want the 150 of the session less the 37 that it used", level)
		}
		f.report(1)
		f.report(0)
		if level, debt := f.level(); level != 113 || debt != 0 {
			t.Errorf("level %d and debt %d, want what it was", level, debt)
		}
	})
	t.Run("T51_beyond_the_share_is_debt", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t, fsmtest.WithShadow(t), 2)
		f.drain()
		f.outage(30*time.Second, func(_ int, most int64) int64 { return most + 20 })
		if b := f.report(0); b.GetTokens() != 170 || b.GetDebt() != 20 {
			t.Errorf("booked %v, want 170 and a debt of 20", b)
		}
	})
	t.Run("A19_an_election_is_no_outage", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t, fsmtest.WithShadow(t), 2)
		f.drain()
		f.outage(3*time.Second, func(int, int64) int64 { return 0 })
		if !f.take(3 * sharedRate) {
			t.Error("three seconds withhold refill")
		}
	})
	t.Run("T51_no_more_comes_back_than_there_was_room_for", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t, fsmtest.WithShadow(t), 2)
		f.take(100)
		f.outage(30*time.Second, func(int, int64) int64 { return 1 })
		f.drain()
		f.report(0)
		f.report(1)
		if level, debt := f.level(); level != 100 || debt != 0 {
			t.Errorf("level %d, debt %d: want the 100 that there was room for", level, debt)
		}
		f.drain()
		f.refresh()
		f.report(0)
		if level, _ := f.level(); level != sharedRate {
			t.Errorf("level %d a second later, want %d: it came back before", level, sharedRate)
		}
	})
	t.Run("T14_a_changed_limit_withholds_all_the_same", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t, fsmtest.WithShadow(t), 2)
		f.drain()
		f.outage(30*time.Second, all)
		faster := sharedLimit(t)
		faster.Dimensions[0].Amount = 20
		f.At(f.now, fsmtest.Apply(faster))
		if f.take(1) {
			t.Error("a change of the limit hands out what was withheld")
		}
	})
}

// TestOutageAfterOutage: what one outage left to a session that said nothing is not to be
// had from what the next one withholds, for others.
func TestOutageAfterOutage(t *testing.T) {
	t.Parallel()
	t.Run("T51_who_said_nothing_of_one_outage_has_nothing_of_the_next", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t, fsmtest.WithShadow(t), 2)
		idle := func(i int, most int64) int64 { return most * int64(i) }
		f.outage(30*time.Second, idle)
		f.report(1)
		for range sharedBurst/sharedRate + 1 {
			f.refresh()
		}
		f.drain()
		f.outage(10*time.Second, func(i int, most int64) int64 { return max(1, most*int64(i)) })
		f.report(0)
		f.report(1)
		if level, debt := f.level(); level != 49 || debt != 0 {
			t.Errorf("level %d and debt %d, want the 50 of the session that used 1 of it, less that", level, debt)
		}
	})
}

// TestFlaps: through several outages, with a client that takes whatever the authority has
// as soon as it is back, and reports that come late and in any order, authority and
// clients together spend no more than one bucket and its rate.
func TestFlaps(t *testing.T) {
	t.Parallel()
	for part := range 4 {
		t.Run(fmt.Sprintf("T51_A20_part_%d", part), func(t *testing.T) {
			t.Parallel()
			for run := range 150 {
				d := fsmtest.New(t)
				if run == 0 {
					// It is saved and restored after each entry.
					d = fsmtest.WithShadow(t)
				}
				flap(t, d, rand.New(rand.NewPCG(uint64(part), uint64(run))))
				if t.Failed() {
					t.Fatalf("run %d", run)
				}
			}
		})
	}
}

func flap(t *testing.T, d *fsmtest.Driver, random *rand.Rand) {
	f := newFleet(t, d, 1+random.IntN(4))
	for range 1 + random.IntN(4) {
		for range random.IntN(5) {
			f.refresh()
			if random.IntN(2) == 0 {
				f.drain()
			}
		}
		f.outage(time.Duration(4+random.IntN(80))*time.Second, func(_ int, most int64) int64 {
			return random.Int64N(most + 1)
		})
		for range 2 * len(f.held) {
			if random.IntN(2) == 0 {
				f.drain()
			}
			f.report(random.IntN(len(f.held)))
		}
		spent := f.granted
		for _, n := range f.admitted {
			spent += n
		}
		if most := sharedBurst + sharedRate*int64(f.now/time.Second); spent > most {
			t.Fatalf("after %v %d are spent, at most %d may be", f.now, spent, most)
		}
	}
}
