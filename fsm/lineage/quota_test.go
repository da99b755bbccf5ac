package lineage_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
)

const day = int64(24 * time.Hour)

// account is a quota as one would keep it on paper: what there may be, and what was
// used in the window.
type account struct{ amount, maxDebt, used int64 }

func (a *account) take(n int64) bool {
	if n < 1 || a.used+n > a.amount {
		return false
	}
	a.used += n
	return true
}

// excess books usage that was not asked for, and returns what nobody pays.
func (a *account) excess(n int64) int64 {
	left := max(0, a.amount-a.used)
	owed := max(0, a.used-a.amount)
	room := left + max(0, a.maxDebt-owed)
	a.used += min(n, room)
	return max(0, n-room)
}

// quotaRun is a quota with one key, which may lag behind by some versions.
type quotaRun struct {
	t      *testing.T
	random *rand.Rand
	l      *lineage.Lineage
	limit  *logv1.Limit
	now    bucket.Instant
	passed uint32
	held   []lineage.Held
	paper  account
	// wall is where the next window may begin, named whether this one has an end.
	wall  int64
	named bool
	// granted is what was given out in this window, most the most that was ever
	// allowed in it.
	granted, most int64
}

func newQuotaRun(t *testing.T, seed uint64) *quotaRun {
	t.Helper()
	r := &quotaRun{t: t, random: rand.New(rand.NewPCG(seed, 3)), limit: quotaLimit(), wall: 100 * day}
	r.limit.Overrides, r.limit.Dimensions = nil, r.limit.GetDimensions()[:1]
	r.limit.Calendar.Period = logv1.Calendar_PERIOD_DAY
	var err error
	if r.l, err = lineage.New(1, r.limit, 0); err != nil {
		t.Fatal(err)
	}
	r.held, r.passed = r.l.Now().Fresh(0), r.l.Now().Number
	r.paper = account{amount: 100, maxDebt: 10}
	r.most = 100
	return r
}

func (r *quotaRun) pass() {
	r.held = r.l.Pass("k", r.held, r.passed)
	r.passed = r.l.Now().Number
	r.held[0].Bucket.Advance(r.l.Now().Dimensions[0].Shape, r.now)
	r.l = r.l.Trim(r.passed)
}

func (r *quotaRun) change(limit *logv1.Limit) {
	r.t.Helper()
	next, err := r.l.Change(limit, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	r.l = next
}

func (r *quotaRun) roll(starts, ends int64) {
	r.t.Helper()
	next, err := r.l.Roll(starts, ends, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.l = next; r.named {
		r.paper.used, r.granted, r.most = 0, 0, r.paper.amount
	}
	r.wall, r.named = ends, true
}

// step does one thing at random to the quota and to the paper.
func (r *quotaRun) step() {
	r.t.Helper()
	r.now += bucket.Instant(r.random.Int64N(int64(time.Hour)))
	switch r.random.IntN(12) {
	case 0:
		r.roll(r.wall+r.random.Int64N(5), r.wall+day)
	case 1, 2:
		r.limit = proto.CloneOf(r.limit)
		r.paper.amount = pick(r.random, int64(0), 20, 50, 100, 1000)
		r.paper.maxDebt = pick(r.random, int64(0), 5, 40)
		r.limit.Dimensions[0].Burst, r.limit.Dimensions[0].MaxDebt = r.paper.amount, r.paper.maxDebt
		r.most = max(r.most, r.paper.amount)
		r.change(r.limit)
	case 3:
		// Another zone is another calendar: the next window only gets its name.
		r.limit = proto.CloneOf(r.limit)
		r.limit.Calendar.Timezone = fmt.Sprint("Zone", r.random.IntN(1000))
		r.change(r.limit)
		r.named = r.l.Now().Ends != 0
	case 4:
		r.change(nil)
		if r.random.IntN(2) == 0 {
			r.l = r.l.Forget(r.now)
		}
		r.change(r.limit)
	case 5:
		r.pass()
		shape := r.l.Now().Dimensions[0].Shape
		n := r.random.Int64N(60) + 1
		if got, want := r.held[0].Bucket.Excess(shape, 0, n), r.paper.excess(n); got != want {
			r.t.Fatalf("excess of %d: %d written off, want %d", n, got, want)
		}
	default:
		r.pass()
		shape := r.l.Now().Dimensions[0].Shape
		n := r.random.Int64N(30) + 1
		before := r.paper
		_, got := r.held[0].Bucket.Take(shape, 0, n)
		if want := r.paper.take(n); got != want {
			r.t.Fatalf("%d of %+v: %v, want %v", n, before, got, want)
		}
		if got {
			r.granted += n
		}
	}
}

// TestQuotasHandOutTheirAmount: whatever is rolled, changed, deleted or left alone,
// a window hands out what is left on paper, and never more than its amount.
func TestQuotasHandOutTheirAmount(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		t.Run(fmt.Sprintf("A12_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			r := newQuotaRun(t, seed)
			for range 120 {
				r.step()
				if r.granted > r.most {
					t.Fatalf("%d were handed out of at most %d", r.granted, r.most)
				}
			}
			r.pass()
			shape := r.l.Now().Dimensions[0].Shape
			if got, want := r.held[0].Bucket.Remaining(shape), r.paper.amount-r.paper.used; got != want {
				t.Errorf("%d are left, want %d", got, want)
			}
			fresh := r.l.Now().Fresh(r.now)[0]
			if !fresh.Bucket.Equal(ptr(shape.Full(r.now))) {
				t.Error("a key never seen has not all of it")
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

// TestA12QuotaGoesDownAndUpAgain: what was used stays used, also beyond an amount
// that was lowered for a while.
func TestA12QuotaGoesDownAndUpAgain(t *testing.T) {
	t.Parallel()
	t.Run("A12", func(t *testing.T) {
		t.Parallel()
		r := newQuotaRun(t, 0)
		if _, ok := r.held[0].Bucket.Take(r.l.Now().Dimensions[0].Shape, 0, 80); !ok {
			t.Fatal("80 of 100 are not there")
		}
		for _, tt := range []struct{ amount, want int64 }{{50, -30}, {100, 20}, {200, 120}, {80, 0}, {0, -80}, {1000, 920}} {
			limit := proto.CloneOf(r.limit)
			limit.Dimensions[0].Burst = tt.amount
			r.change(limit)
			r.pass()
			if got := r.held[0].Bucket.Remaining(r.l.Now().Dimensions[0].Shape); got != tt.want {
				t.Errorf("%d of %d are left after 80, want %d", got, tt.amount, tt.want)
			}
		}
	})
}

// TestWindowsThatCantBe: a window follows the one before, and has the length of its
// period.
func TestWindowsThatCantBe(t *testing.T) {
	t.Parallel()
	l, err := lineage.New(1, quotaLimit(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = l.Roll(31*day, 59*day, 5); err != nil {
		t.Fatal(err)
	}
	if v := l.Now(); v.Number != 1 || v.Starts != 31*day || v.Ends != 59*day || len(l.Versions) != 1 {
		t.Errorf("version %d from %d to %d", v.Number, v.Starts, v.Ends)
	}
	for _, tt := range []struct {
		name         string
		starts, ends int64
	}{
		{"before the end", 59*day - 1, 90 * day},
		{"backwards", 59 * day, 58 * day},
		{"too short", 59 * day, 80 * day},
		{"too long", 59 * day, 93 * day},
		{"before all time", -1, 30 * day},
	} {
		if _, err := l.Roll(tt.starts, tt.ends, 5); err == nil {
			t.Errorf("%s: from %d to %d", tt.name, tt.starts, tt.ends)
		}
	}
	for name, limit := range map[string]*logv1.Limit{"rate": rateLimit(), "slots": slotLimit()} {
		other, err := lineage.New(1, limit, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Roll(0, day, 5); err == nil {
			t.Errorf("%s has a window", name)
		}
	}
	if l, err = l.Change(nil, 6); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Roll(59*day, 90*day, 7); err == nil {
		t.Error("a deleted limit has a window")
	}
}

// TestRollsLetGoOfTheWindowBefore: dimensions are others, so that leases of before
// return to none, and keys that have not passed are as ones never seen.
func TestRollsLetGoOfTheWindowBefore(t *testing.T) {
	t.Parallel()
	l, err := lineage.New(1, quotaLimit(), 0)
	if err != nil {
		t.Fatal(err)
	}
	held, passed := drain(l, l.Now().Fresh(0)), l.Now().Number
	if l, err = l.Roll(0, 31*day, 0); err != nil {
		t.Fatal(err)
	}
	if at := l.Due(lineage.Waiting(passed)); at != lineage.Never {
		t.Errorf("due at %d in its window", at)
	}
	old := l.Now().Dimensions[0].ID
	if l, err = l.Roll(31*day, 59*day, 70); err != nil {
		t.Fatal(err)
	}
	if at := l.Due(lineage.Waiting(passed)); at != 70 {
		t.Errorf("due at %d after its window, want 70", at)
	}
	if at := l.Due(lineage.Waiting(l.Now().Number)); at != lineage.Never {
		t.Errorf("due at %d in the window of now", at)
	}
	if l.Now().FindID(old) >= 0 || l.Now().For("big-1").FindID(old) >= 0 {
		t.Error("a lease of the window before would return")
	}
	for _, key := range []string{"k", "big-1"} {
		next := l.Pass(key, clone(held), passed)
		for i := range next {
			fresh := l.Now().For(key).Dimensions[i].Pristine
			if !next[i].Bucket.Equal(&fresh) || next[i].Open != 0 {
				t.Errorf("key %s: %+v, want a full one", key, next[i])
			}
		}
	}
	loaded, err := lineage.Load(proto.CloneOf(l.Save()), 70)
	if err != nil {
		t.Fatal(err)
	}
	if sumOf(loaded) != sumOf(l) || loaded.Due(lineage.Waiting(passed)) != 70 {
		t.Error("it is another one after it was saved and loaded")
	}
}

// TestKindsAreApart: tokens left of a rate are no quota, and a quota comes back as it
// was left.
func TestKindsAreApart(t *testing.T) {
	t.Parallel()
	r := newQuotaRun(t, 0)
	if _, ok := r.held[0].Bucket.Take(r.l.Now().Dimensions[0].Shape, 0, 80); !ok {
		t.Fatal("80 of 100 are not there")
	}
	rate := good()
	rate.Name, rate.Classes = r.limit.GetName(), nil
	r.change(rate)
	r.pass()
	if got := r.held[0].Bucket.Level(r.l.Now().Dimensions[0].Shape); got != 10 || len(r.held) != 2 {
		t.Errorf("the rate begins with %d, want 10", got)
	}
	r.change(r.limit)
	r.pass()
	if got := r.held[0].Bucket.Level(r.l.Now().Dimensions[0].Shape); got != 20 {
		t.Errorf("the quota goes on with %d, want 20", got)
	}
	r.change(nil)
	r.now += bucket.Instant(33 * day)
	if at := r.l.EndAt(); at > r.now {
		t.Errorf("a deleted quota ends at %d, want %d at the latest", at, r.now)
	}
	if r.l = r.l.Forget(r.now); len(r.l.Now().Dimensions) != 0 {
		t.Errorf("%d dimensions are left of it", len(r.l.Now().Dimensions))
	}
	if at := r.l.Due(lineage.Waiting(r.passed)); at != r.now {
		t.Errorf("its keys are due at %d, want %d", at, r.now)
	}
}
