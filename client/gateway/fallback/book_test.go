package fallback_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway/fallback"
)

// evening is some minutes before a day ends in UTC, in a zone in which it is another day.
var evening = time.Date(2026, 12, 1, 23, 50, 0, 0, time.UTC).In(time.FixedZone("east", 8*3600))

// account is what a history has spent, day by day, counted apart.
type account struct {
	first, dear, held map[int64]int64
}

func day(now time.Time) int64 { return now.Unix() / 86_400 }

// check holds a day to the bound: what went to fallbacks and may still go there, of all that was
// spent, on this day or the last one.
func (a *account) check(t *testing.T, now time.Time, bound fallback.Bound) {
	t.Helper()
	today := day(now)
	dear := a.dear[today] + a.held[today]
	first := max(a.first[today], a.first[today-1])
	if dear > bound.Free && dear*10_000 > int64(bound.ShareBP)*(dear+first) {
		t.Fatalf("%v: %d of %d went to fallbacks, of which %d is held; the bound is %+v", now, dear, dear+first,
			a.held[today], bound)
	}
}

// open is a call of a fallback.
type open struct {
	hold   *fallback.Hold
	amount int64
	day    int64
}

// history plays one history of three days at most, and says how many fallbacks there were.
func history(t *testing.T, seed uint64) (calls int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 28))
	bound := fallback.Bound{ShareBP: 1 + r.IntN(9_999), Free: r.Int64N(3) * r.Int64N(5_000)}
	book := &fallback.Book{}
	a := account{map[int64]int64{}, map[int64]int64{}, map[int64]int64{}}
	now := evening
	var going []open
	for range 60 + r.IntN(60) {
		steps := []time.Duration{time.Minute, time.Minute, 8 * time.Hour}
		now = now.Add(time.Duration(r.Int64N(int64(steps[r.IntN(len(steps))]))))
		switch amount := r.Int64N(1_000); {
		case r.IntN(3) == 0:
			book.Spent(now, nil, amount)
			a.first[day(now)] += amount
		case len(going) > 0 && r.IntN(2) == 0:
			i := r.IntN(len(going))
			one := going[i]
			going = append(going[:i], going[i+1:]...)
			used := one.amount
			if r.IntN(5) == 0 {
				one.hold.Keep(now)
			} else {
				used = r.Int64N(one.amount + 1)
				book.Spent(now, one.hold, used)
			}
			// Whatever is said after the end is said too late.
			one.hold.Ended(now, true)
			book.Spent(now, one.hold, one.amount)
			a.held[one.day] -= one.amount
			a.dear[one.day] += used
		default:
			if hold, ok := book.Reserve(now, bound, amount); ok {
				calls++
				going = append(going, open{hold, amount, day(now)})
				a.held[day(now)] += amount
			}
		}
		a.check(t, now, bound)
	}
	return calls
}

// TestShare: what goes to fallbacks stays within the share of the day's money, whatever comes
// in which order and on which side of midnight, and it is used.
func TestShare(t *testing.T) {
	t.Parallel()
	t.Run("S2-28_ten_thousand_histories", func(t *testing.T) {
		t.Parallel()
		calls := 0
		for seed := range uint64(10_000) {
			calls += history(t, seed)
		}
		if calls < 100_000 {
			t.Errorf("%d fallbacks in all histories: the bound was hardly met", calls)
		}
	})
}

// TestBook: days, prices of nothing, and calls that cost more than was set aside.
func TestBook(t *testing.T) {
	t.Parallel()
	tenth := fallback.Bound{ShareBP: 1_000}
	reserve := func(t *testing.T, b *fallback.Book, now time.Time, bound fallback.Bound, amount int64) *fallback.Hold {
		t.Helper()
		hold, ok := b.Reserve(now, bound, amount)
		if !ok {
			t.Errorf("%d at %v are refused", amount, now)
		}
		return hold
	}
	refused := func(t *testing.T, b *fallback.Book, now time.Time, bound fallback.Bound, amount int64) {
		t.Helper()
		if _, ok := b.Reserve(now, bound, amount); ok {
			t.Errorf("%d at %v are set aside", amount, now)
		}
	}
	t.Run("who_has_spent_nothing_falls_back_for_nothing", func(t *testing.T) {
		t.Parallel()
		var b fallback.Book
		refused(t, &b, evening, tenth, 1)
		reserve(t, &b, evening, tenth, 0)
		reserve(t, &b, evening, fallback.Bound{ShareBP: -1, Free: 5}, 5)
		if s := b.Stats(); s.Short != 1 || s.Held != 5 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("a_tenth_of_all", func(t *testing.T) {
		t.Parallel()
		var b fallback.Book
		b.Spent(evening, nil, 90)
		refused(t, &b, evening, fallback.Bound{}, 11)
		hold := reserve(t, &b, evening, fallback.Bound{}, 10)
		refused(t, &b, evening, tenth, 1)
		b.Spent(evening, hold, 4)
		reserve(t, &b, evening, tenth, 6)
	})
	t.Run("what_cost_more_is_owed", func(t *testing.T) {
		t.Parallel()
		var b fallback.Book
		b.Spent(evening, nil, 90)
		b.Spent(evening, reserve(t, &b, evening, tenth, 10), 30)
		b.Spent(evening, nil, 179)
		refused(t, &b, evening, tenth, 0)
		b.Spent(evening, nil, 1)
		reserve(t, &b, evening, tenth, 0)
	})
	t.Run("the_last_day_counts_and_the_one_before_does_not", func(t *testing.T) {
		t.Parallel()
		var b fallback.Book
		b.Spent(evening, nil, 90)
		hold := reserve(t, &b, evening, tenth, 10)
		midnight := evening.Add(10 * time.Minute)
		refused(t, &b, midnight.Add(-time.Nanosecond), tenth, 1)
		next := reserve(t, &b, midnight, tenth, 10)
		// Yesterday's call does not make room today.
		b.Spent(midnight, hold, 0)
		refused(t, &b, midnight, tenth, 1)
		b.Spent(midnight, next, 0)
		// A clock that is set back begins no new day.
		reserve(t, &b, evening, tenth, 10)
		refused(t, &b, midnight, tenth, 1)
		refused(t, &b, midnight.Add(48*time.Hour), tenth, 1)
		if s := b.Stats(); s.Held != 0 {
			t.Errorf("%+v: what is two days old is held", s)
		}
	})
	t.Run("bounds", func(t *testing.T) {
		t.Parallel()
		for _, bad := range []fallback.Bound{{ShareBP: -2}, {ShareBP: 10_001}, {Free: -1}, {Free: 1<<53 + 1}} {
			if bad.Validate() == nil {
				t.Errorf("%+v is valid", bad)
			}
		}
		var b fallback.Book
		b.Spent(evening, nil, 1<<62)
		for range 1 << 10 {
			reserve(t, &b, evening, fallback.Bound{ShareBP: 10_000, Free: 1 << 53}, 1<<62)
		}
		if err := (fallback.Bound{ShareBP: 10_000, Free: 1 << 53}).Validate(); err != nil {
			t.Error(err)
		}
	})
}
