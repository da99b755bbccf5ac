package bucket

import (
	"time"

	"pgregory.net/rapid"
)

// source draws the numbers of a history, from rapid or from the bytes of a
// fuzzer.
type source interface {
	// upTo draws a number from 0 to most.
	upTo(what string, most int64) int64
}

// drawSpec draws a spec that is valid and whose numbers are tiny: everything
// that can happen to it happens within a few hundred nanoseconds.
func drawSpec(src source) Spec {
	spec := Spec{
		Amount:   src.upTo("amount", 9),
		Interval: time.Duration(1 + src.upTo("interval", 11)),
		Target:   []int64{Whole, 7500, 3333, 1250}[src.upTo("target", 3)],
		MaxDebt:  src.upTo("max_debt", 12),
	}
	shares, subBursts := int64(Whole), int64(0)
	for i := src.upTo("classes", 4); i > 0; i-- {
		c := ClassSpec{Share: min(shares, []int64{0, 1000, 2500, 3333, 5000, Whole}[src.upTo("share", 5)])}
		if c.Share > 0 {
			c.SubBurst = src.upTo("sub_burst", 4)
		}
		shares -= c.Share
		subBursts += c.SubBurst
		spec.Classes = append(spec.Classes, c)
	}
	spec.Burst = subBursts + 1 + src.upTo("burst", 8)
	return spec
}

// grant is one that can still be refunded.
type grant struct {
	class   int
	n, took int64
}

// history drives a bucket and the oracle through the same operations and
// compares them after each.
type history struct {
	rapid.TB
	src    source
	spec   Spec
	s      *Shape
	b      Bucket
	o      *oracle
	grants []grant
}

func newHistory(t rapid.TB, src source) *history {
	h := &history{TB: t, src: src, spec: drawSpec(src)}
	h.s = mustShape(t, h.spec)
	h.b = h.s.Full(0)
	h.o = newOracle(h.spec)
	return h
}

func mustShape(t rapid.TB, spec Spec) *Shape {
	t.Helper()
	s, err := NewShape(spec)
	if err != nil {
		t.Fatalf("NewShape(%+v): %v", spec, err)
	}
	return s
}

// run plays that many operations.
func (h *history) run(steps int64) {
	h.Helper()
	for range steps {
		class := int(h.src.upTo("class", int64(h.s.Classes()-1)))
		switch h.src.upTo("operation", 11) {
		case 0, 1, 2:
			h.advance(h.src.upTo("nanoseconds", 30))
		case 3:
			h.advance(h.src.upTo("long", 300))
		case 4, 5, 6:
			h.take(class, h.src.upTo("take", 8))
		case 7:
			h.refund()
		case 8, 9:
			h.excess(class, h.src.upTo("excess", 9))
		case 10:
			h.adjust()
		case 11:
			h.convert()
		}
		requireSame(h, &h.b, h.s, h.o)
		h.inspect()
	}
}

func (h *history) advance(by int64) {
	h.b.Advance(h.s, h.b.Last()+Instant(by))
	h.b.Advance(h.s, h.b.Last()-Instant(by))
	for range by {
		h.o.nanosecond()
	}
}

func (h *history) take(class int, n int64) {
	before := h.b.Clone()
	took, ok := h.b.Take(h.s, class, n)
	wantTook, wantOK := h.o.take(class, n)
	if ok != wantOK {
		h.Fatalf("Take(%d, %d) = %v, want %v\nspec %+v\nbucket %+v", class, n, ok, wantOK, h.spec, before)
	}
	if num(took).Mul(num(took), h.o.unit).Cmp(times(wantTook, h.s.unit)) != 0 {
		h.Fatalf("Take(%d, %d) took %d of 1/%d, want %v of 1/%v", class, n, took, h.s.unit, wantTook, h.o.unit)
	}
	if ok {
		h.grants = append(h.grants, grant{class, n, took})
		return
	}
	if !h.b.Equal(&before) {
		h.Fatalf("a denial changed %+v to %+v", before, h.b)
	}
	h.wait(class, n)
}

// wait compares the time to come back with waiting for it.
func (h *history) wait(class int, n int64) {
	const most = 200
	got, ok := h.b.affordsIn(h.s, class, n)
	switch want := h.o.affordsIn(class, n, most); {
	case want >= 0 && (!ok || got != uint64(want)):
		h.Fatalf("class %d affords %d in %d ns (%v), want %d\nspec %+v\nbucket %+v",
			class, n, got, ok, want, h.spec, h.b)
	case want < 0 && ok && got <= most:
		h.Fatalf("class %d affords %d in %d ns, but it doesn't\nspec %+v\nbucket %+v",
			class, n, got, h.spec, h.b)
	case !ok && h.spec.Amount > 0 && n >= 1 && n <= h.s.EffectiveBurst(class):
		h.Fatalf("class %d never affords %d\nspec %+v\nbucket %+v", class, n, h.spec, h.b)
	}
}

func (h *history) refund() {
	if len(h.grants) == 0 {
		return
	}
	g := h.grants[len(h.grants)-1]
	h.grants = h.grants[:len(h.grants)-1]
	n := h.src.upTo("refund", g.n)
	h.b.Refund(h.s, g.class, n, g.took)
	took := times(h.o.unit, g.took)
	h.o.refund(g.class, n, took.Quo(took, num(h.s.unit)))
}

func (h *history) excess(class int, n int64) {
	got := h.b.Excess(h.s, class, n)
	if want := h.o.excess(class, n); got != want {
		h.Fatalf("Excess(%d, %d) wrote %d off, want %d\nspec %+v", class, n, got, want, h.spec)
	}
}

func (h *history) adjust() {
	switch n := h.src.upTo("adjust", 9); h.src.upTo("how", 2) {
	case 0:
		h.b.Lower(h.s, n)
		h.o.lower(n)
	case 1:
		h.b.Raise(h.s, n)
		h.o.pour(times(h.o.unit, n))
	case 2:
		h.b.Reset(h.s)
		h.o.reset()
	}
}

// convert changes the limit. Grants of the old one are settled: their classes
// may be gone.
func (h *history) convert() {
	spec := drawSpec(h.src)
	to := mustShape(h, spec)
	origin := make([]int, to.Classes())
	for i := range origin {
		origin[i] = int(h.src.upTo("origin", int64(h.s.Classes()))) - 1
	}
	before := h.b.Clone()
	h.b.Convert(h.s, to, origin)
	requireNoGift(h, &before, h.s, &h.b, to)
	h.o = h.o.convert(spec, origin)
	h.spec, h.s, h.grants = spec, to, nil
}

// requireNoGift compares levels and debts as fractions of tokens.
func requireNoGift(t rapid.TB, before *Bucket, from *Shape, after *Bucket, to *Shape) {
	t.Helper()
	had, has := num(before.free+before.reserved()), num(after.free+after.reserved())
	if times(has, from.unit).Cmp(times(had, to.unit)) > 0 {
		t.Fatalf("a change of limit made a level of %v/%d tokens %v/%d", had, from.unit, has, to.unit)
	}
	owed, owes := num(0), num(0)
	for _, own := range before.subs {
		owed = sum(owed, num(own.debt))
	}
	for _, own := range after.subs {
		owes = sum(owes, num(own.debt))
	}
	if times(owes, from.unit).Cmp(times(owed, to.unit)) < 0 {
		t.Fatalf("a change of limit made a debt of %v/%d tokens %v/%d", owed, from.unit, owes, to.unit)
	}
}

// inspect checks what holds at any time, and what is shown of the state.
func (h *history) inspect() {
	requireInRange(h, &h.b, h.s)
	saved, err := FromState(h.s, h.b.State())
	if err != nil || !saved.Equal(&h.b) {
		h.Fatalf("FromState(State()) = %+v, %v, want %+v", saved, err, h.b)
	}
	const most = 200
	ahead := h.o.clone()
	for ahead.now-h.o.now < most && !ahead.isFull() {
		ahead.nanosecond()
	}
	at, ok := h.b.FullAt(h.s)
	if want := Instant(ahead.now); ahead.isFull() && (!ok || at != want) ||
		!ahead.isFull() && ok && at <= want {
		h.Fatalf("FullAt() = %d, %v, but the oracle at %d is full: %v\nspec %+v\nbucket %+v",
			at, ok, want, ahead.isFull(), h.spec, h.b)
	}
	for class := range h.s.Classes() {
		can := h.b.Available(h.s, class)
		if can > h.b.Level(h.s) || can > 0 && !h.o.affords(class, can) || h.o.affords(class, can+1) {
			h.Fatalf("class %d may take %d tokens of %+v\nspec %+v", class, can, h.b, h.spec)
		}
	}
}

// requireInRange is I2: nothing negative, nothing above its bound, and no parts
// kept for a bucket that needs none.
func requireInRange(t rapid.TB, b *Bucket, s *Shape) {
	t.Helper()
	left := s.full - b.free
	for c, own := range b.subs {
		left -= own.level
		if own.level < 0 || own.level > s.classes[c].room || own.debt < 0 {
			t.Fatalf("class %d out of range: %+v of %+v", c, own, s.classes[c])
		}
	}
	if b.free < 0 || left < 0 {
		t.Fatalf("bucket out of range: %+v with a burst of %d units", b, s.full)
	}
	if b.subs != nil && !s.named && b.subs[0] == (sub{}) {
		t.Fatalf("an unnamed class without debt takes memory: %+v", b)
	}
}
