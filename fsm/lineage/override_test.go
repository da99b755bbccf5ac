package lineage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// keys have prefixes in common, and some are prefixes of others.
var keys = []string{"", "a", "ab", "abc", "abcd", "ac", "b", "ba", "cab", "a~z"}

// overridden is a limit at random with overrides for some of the keys.
func overridden(random *rand.Rand) *logv1.Limit {
	limit := randomLimit(random)
	limit.Keyed, limit.MaxKeys = true, 100
	for n := random.IntN(5); n > 0 && !limit.GetUnlimited(); n-- {
		o := &logv1.Override{Value: pick(random, keys[1:]...), Prefix: random.IntN(2) == 0}
		for _, d := range limit.GetDimensions() {
			d = proto.CloneOf(d)
			d.Amount, d.Burst = pick(random, int64(0), 1, 7), pick(random, int64(2), 5, 100)
			d.MaxDebt = pick(random, int64(0), 20)
			o.Dimensions = append(o.Dimensions, d)
		}
		add(limit, o)
	}
	return limit
}

// add adds an override, unless there is one of the kind.
func add(limit *logv1.Limit, o *logv1.Override) {
	if !slices.ContainsFunc(limit.GetOverrides(), func(other *logv1.Override) bool {
		return other.GetValue() == o.GetValue() && other.GetPrefix() == o.GetPrefix()
	}) {
		limit.Overrides = append(limit.Overrides, o)
	}
}

// numbersFor looks through all overrides: the key itself, then the longest prefix.
func numbersFor(limit *logv1.Limit, key string) []*logv1.Dimension {
	best, longest := limit.GetDimensions(), -1
	for _, o := range limit.GetOverrides() {
		switch {
		case !o.GetPrefix() && o.GetValue() == key:
			return o.GetDimensions()
		case o.GetPrefix() && strings.HasPrefix(key, o.GetValue()) && len(o.GetValue()) > longest:
			best, longest = o.GetDimensions(), len(o.GetValue())
		}
	}
	return best
}

// twin is the bucket of one dimension of one key that passes every change when it
// happens, by the arithmetic of buckets alone.
type twin struct {
	shape   *bucket.Shape
	classes []*logv1.Class
	bucket  bucket.Bucket
}

// overrideRun is a limit with overrides under changes.
type overrideRun struct {
	t      *testing.T
	random *rand.Rand
	l      *lineage.Lineage
	limit  *logv1.Limit
	now    bucket.Instant
	// fresh are the twins of keys never seen, by key and number of the dimension;
	// drained those of keys of which something was taken, which hold held.
	fresh, drained map[string]map[uint32]*twin
	held           map[string][]lineage.Held
	passed         map[string]uint32
}

func newOverrideRun(t *testing.T, seed uint64) *overrideRun {
	t.Helper()
	r := &overrideRun{
		t: t, random: rand.New(rand.NewPCG(seed, 4)), fresh: map[string]map[uint32]*twin{},
		drained: map[string]map[uint32]*twin{}, held: map[string][]lineage.Held{}, passed: map[string]uint32{},
	}
	r.limit = overridden(r.random)
	var err error
	if r.l, err = lineage.New(1, r.limit, 0); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		r.fresh[key], r.drained[key] = map[uint32]*twin{}, map[uint32]*twin{}
		r.follow(r.fresh[key], key)
		r.follow(r.drained[key], key)
		v := r.l.Now().For(key)
		r.held[key], r.passed[key] = v.Fresh(0), r.l.Now().Number
		for i := range r.held[key] {
			n := r.random.Int64N(40)
			r.held[key][i].Bucket.Lower(v.Dimensions[i].Shape, n)
			r.drained[key][v.Dimensions[i].ID].bucket.Lower(v.Dimensions[i].Shape, n)
		}
	}
	return r
}

// follow takes the twins of a key over a change of the limit. Which dimension is
// still the same one is taken from the lineage.
func (r *overrideRun) follow(twins map[uint32]*twin, key string) {
	r.t.Helper()
	plain := proto.CloneOf(r.limit)
	plain.Dimensions, plain.Overrides = numbersFor(r.limit, key), nil
	shapes, err := lineage.Shapes(plain)
	if err != nil {
		r.t.Fatal(err)
	}
	for i, shape := range shapes {
		id := r.l.Now().Dimensions[i].ID
		one := twins[id]
		if one == nil {
			twins[id] = &twin{shape: shape, classes: r.limit.GetClasses(), bucket: shape.Full(r.now)}
			continue
		}
		one.bucket.Advance(one.shape, r.now)
		one.bucket.Convert(one.shape, shape, originOf(r.limit.GetClasses(), one.classes))
		one.shape, one.classes = shape, r.limit.GetClasses()
	}
}

func originOf(classes, old []*logv1.Class) []int {
	if len(classes) == 0 && len(old) == 0 {
		return []int{0}
	}
	var origin []int
	for _, class := range classes {
		origin = append(origin, slices.IndexFunc(old, func(c *logv1.Class) bool { return c.GetName() == class.GetName() }))
	}
	return origin
}

func (r *overrideRun) change(limit *logv1.Limit) {
	r.t.Helper()
	next, err := r.l.Change(limit, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.l, err = lineage.Load(proto.CloneOf(next.Save()), r.now); err != nil {
		r.t.Fatal(err)
	}
	if sumOf(r.l) != sumOf(next) {
		r.t.Error("it is another one after it was saved and loaded")
	}
}

// step changes the limit, and now and then forgets what is over or deletes it before.
func (r *overrideRun) step() {
	r.t.Helper()
	r.now += bucket.Instant(r.random.Int64N(int64(pick(r.random, time.Second, 20*time.Second, 26*time.Hour))))
	if r.random.IntN(3) == 0 {
		r.l = r.l.Forget(r.now)
	}
	if r.random.IntN(6) == 0 {
		r.change(nil)
	}
	r.limit = overridden(r.random)
	r.change(r.limit)
	for _, key := range keys {
		r.follow(r.fresh[key], key)
		r.follow(r.drained[key], key)
		if r.random.IntN(3) == 0 {
			r.held[key], r.passed[key] = r.l.Pass(key, r.held[key], r.passed[key]), r.l.Now().Number
		}
	}
}

func (r *overrideRun) compare(key string, twins map[uint32]*twin, held []lineage.Held) {
	r.t.Helper()
	for i, spec := range r.limit.GetDimensions() {
		d := &r.l.Now().For(key).Dimensions[i]
		b, want := held[i].Bucket, twins[d.ID]
		b.Advance(d.Shape, r.now)
		want.bucket.Advance(want.shape, r.now)
		if !b.Equal(&want.bucket) {
			r.t.Errorf("key %q, %s: %+v, want %+v", key, spec.GetName(), b.State(), want.bucket.State())
		}
	}
}

// TestOverridesNeverGift drives a limit with overrides through changes. What a key
// holds that was never seen, and what a drained one holds that passes the changes
// whenever it likes, is to the unit what it would be if each key had its numbers to
// itself and had passed every change at once.
func TestOverridesNeverGift(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		t.Run(fmt.Sprintf("T14_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			r := newOverrideRun(t, seed)
			for range 14 {
				r.step()
			}
			for _, key := range keys {
				r.compare(key, r.fresh[key], r.l.Now().For(key).Fresh(r.now))
				r.compare(key, r.drained[key], r.l.Pass(key, r.held[key], r.passed[key]))
			}
		})
	}
}

// TestKeysFindTheirOverride: the key itself, then the longest prefix, whatever
// others there are.
func TestKeysFindTheirOverride(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 5))
	for range 2_000 {
		limit := overridden(random)
		for n := random.IntN(40); n > 0 && !limit.GetUnlimited(); n-- {
			one := proto.CloneOf(&logv1.Override{Dimensions: limit.GetDimensions()})
			one.Value, one.Prefix = word(random), random.IntN(2) == 0
			one.Dimensions[0].Burst = random.Int64N(1 << 30)
			add(limit, one)
		}
		l, err := lineage.New(1, limit, 0)
		if err != nil {
			continue
		}
		for range 50 {
			key := word(random)
			for i, want := range numbersFor(limit, key) {
				if got := l.Now().For(key).Dimensions[i].Spec; !proto.Equal(got, want) {
					t.Fatalf("key %q has %v, want %v of %v", key, got, want, limit.GetOverrides())
				}
			}
		}
	}
}

func word(random *rand.Rand) string {
	var b strings.Builder
	for range random.IntN(6) + 1 {
		b.WriteByte(pick(random, byte('a'), 'b', '~'))
	}
	return b.String()
}

// TestA22KeysAreComparedByteByByte: a key that only looks like another has not its
// override.
func TestA22KeysAreComparedByteByByte(t *testing.T) {
	t.Parallel()
	limit := slotLimit()
	limit.Overrides[0].Value = "café"
	l, err := lineage.New(1, limit, 0)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int64{"café": 40, "cafe\u0301": 4, "Café": 4, "café ": 4, "": 4, "caf": 4} {
		t.Run("A22", func(t *testing.T) {
			t.Parallel()
			if got := l.Now().For(key).Dimensions[0].Shape.Burst(); got != want {
				t.Errorf("%q has %d slots, want %d", key, got, want)
			}
		})
	}
}

// TestRemovedOverridesAreForgotten: once what was never seen of one is full, and not
// before; one that would be remembered for ever is bounded.
func TestRemovedOverridesAreForgotten(t *testing.T) {
	t.Parallel()
	limit := func(values ...string) *logv1.Limit {
		l := &logv1.Limit{Name: "api", Keyed: true, Target: 10_000, Lease: int64(time.Second), MaxKeys: 1}
		l.Dimensions = []*logv1.Dimension{{Name: "requests", Amount: 1, Interval: int64(time.Second), Burst: 100}}
		for _, value := range values {
			l.Overrides = append(l.Overrides, &logv1.Override{Value: value, Prefix: true, Dimensions: []*logv1.Dimension{
				{Name: "requests", Amount: 1, Interval: int64(time.Second), Burst: 5},
			}})
		}
		return l
	}
	l, err := lineage.New(1, limit("a", "ab"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = l.Change(limit("a"), 0); err != nil {
		t.Fatal(err)
	}
	// Those of "ab" have what those of "a" have.
	if len(l.Now().Overrides) != 1 || l.ForgetAt() != lineage.Never {
		t.Errorf("%d overrides, forgotten at %d, want 1 for ever", len(l.Now().Overrides), l.ForgetAt())
	}
	if l, err = l.Change(limit(), 0); err != nil {
		t.Fatal(err)
	}
	full := bucket.Instant(95 * time.Second)
	if at := l.ForgetAt(); at != full {
		t.Errorf("forgotten at %v, want %v", time.Duration(at), time.Duration(full))
	}
	level := func(at bucket.Instant) int64 {
		fresh := l.Now().For("abc").Fresh(at)[0].Bucket
		return fresh.Level(l.Now().For("abc").Dimensions[0].Shape)
	}
	if level(0) != 5 || level(full-1) != 99 || level(full) != 100 {
		t.Errorf("T14: %d at first and %d in the end, want 5 and 99", level(0), level(full-1))
	}
	if l = l.Forget(full); len(l.Now().Overrides) != 0 || level(full) != 100 {
		t.Errorf("%d overrides are left, want none", len(l.Now().Overrides))
	}
}

// TestRemovedOverridesAreBounded: without a rate nothing is ever full again, and what
// comes and goes is remembered up to a number; then the change is refused.
func TestRemovedOverridesAreBounded(t *testing.T) {
	t.Parallel()
	var l *lineage.Lineage
	for round := range 10 {
		limit := &logv1.Limit{Name: "api", Keyed: true, Target: 10_000, Lease: int64(time.Second), MaxKeys: 1}
		limit.Dimensions = []*logv1.Dimension{{Name: "requests", Interval: 1, Burst: 100}}
		for i := range 1000 {
			limit.Overrides = append(limit.Overrides, &logv1.Override{
				Value: fmt.Sprintf("%d-%d", round, i), Prefix: true,
				Dimensions: []*logv1.Dimension{{Name: "requests", Interval: 1, Burst: 5}},
			})
		}
		next, err := lineage.New(1, limit, 0)
		if l != nil {
			next, err = l.Change(limit, 0)
		}
		if err != nil {
			var field *lineage.FieldError
			if round != 4 || !errors.As(err, &field) || field.Field != "overrides" ||
				!strings.Contains(err.Error(), "at most 4096") {
				t.Errorf("round %d: %v", round, err)
			}
			if saved := l.Save(); proto.Size(saved) > 1<<20 {
				t.Errorf("%d bytes of a snapshot", proto.Size(saved))
			}
			return
		}
		if l = next.Trim(next.Now().Number); l.Crowded() {
			t.Fatal("one version is crowded")
		}
	}
	t.Error("ten thousand overrides are remembered")
}

// TestRemovedDimensionsWaitForTheSlowestKey: a dimension is remembered until the
// buckets of every key are full, also of those that an override makes slow.
func TestRemovedDimensionsWaitForTheSlowestKey(t *testing.T) {
	t.Parallel()
	limit := func(names ...string) *logv1.Limit {
		l := &logv1.Limit{Name: "api", Keyed: true, Target: 10_000, Lease: int64(time.Second), MaxKeys: 1}
		slow := &logv1.Override{Value: "slow"}
		for _, name := range names {
			d := &logv1.Dimension{Name: name, Amount: 1, Interval: int64(time.Second), Burst: 10}
			l.Dimensions = append(l.Dimensions, d)
			d = proto.CloneOf(d)
			d.Interval, d.Burst = int64(time.Hour), 40
			slow.Dimensions = append(slow.Dimensions, d)
		}
		l.Overrides = []*logv1.Override{slow}
		return l
	}
	l, err := lineage.New(1, limit("requests", "tokens"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = l.Change(limit("requests"), 0); err != nil {
		t.Fatal(err)
	}
	full := bucket.Instant(40 * time.Hour)
	if at := l.ForgetAt(); at != full {
		t.Errorf("forgotten at %v, want %v", time.Duration(at), time.Duration(full))
	}
	if l = l.Forget(full); len(l.Now().Dimensions) != 1 || len(l.Now().For("slow").Dimensions) != 1 {
		t.Errorf("%d dimensions are left, want 1", len(l.Now().Dimensions))
	}
}
