package escrow

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/fsm/ledger"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/state"
)

// View is what others see of the escrow of a state, between entries.
type View struct{ state *state.State }

// See is the view of a state.
func See(s *state.State) View { return View{s} }

// Holding is a record as its node sees it.
type Holding struct {
	ID                           record.EscrowID
	Limit, Key, Dimension, Class string
	// Amount is the tokens that were given, Left those that no lease was paid with. What
	// was spent from memory only the node knows.
	Amount, Left int64
	// Version is that of the limit under which it was given.
	Version uint32
	// Life is what remains of it by authority time.
	Life time.Duration
	// Void: it can't be spent any more, only given back.
	Void bool
}

// Held are the records of a process that have not ended, in the order of their
// sequences.
func (v View) Held(node string, boot uint64) iter.Seq[Holding] {
	return func(yield func(Holding) bool) {
		for _, e := range v.state.Ledger.OfNode(node) {
			if e.ID.Boot == boot && v.state.Now < e.Until && !yield(v.holding(e)) {
				return
			}
		}
	}
}

// Left are the records that have not ended of processes of a node other than one, in the
// order of their ids.
func (v View) Left(node string, boot uint64) iter.Seq[Holding] {
	return func(yield func(Holding) bool) {
		for _, e := range v.state.Ledger.OfNode(node) {
			if e.ID.Boot != boot && v.state.Now < e.Until && !yield(v.holding(e)) {
				return
			}
		}
	}
}

func (v View) holding(e *ledger.Escrow) Holding {
	lim := v.state.LimitByID(e.LimitID)
	h := Holding{
		ID: e.ID, Limit: lim.Name, Key: e.KeyName, Class: e.Class, Amount: e.Amount, Left: e.Left(),
		Version: e.Version, Life: time.Duration(e.Until - v.state.Now), Void: !holds(v.state, e),
	}
	if d := lim.Now().FindID(e.DimensionID); d >= 0 {
		h.Dimension = lim.Now().Dimensions[d].Spec.GetName()
	}
	return h
}

// Outstanding is what the processes of one node were given of one bucket for one class
// and have not given back.
type Outstanding struct {
	Dimension, Class, Node string
	// Tokens counts spent ones too: only the node knows. Void is the part of them that
	// can't be spent any more.
	Tokens, Void int64
	Records      int
}

// Of is what nodes hold of a key of a limit, in the order of dimension, class and node.
func (v View) Of(limit, key string) []Outstanding {
	lim := v.state.FindLimit(limit)
	if lim == nil {
		return nil
	}
	var list []Outstanding
	// The order does not matter: the list is sorted below, and what is alike is summed.
	for _, e := range v.state.Ledger.OfKey(lim.ID, key) {
		if v.state.Now >= e.Until {
			continue
		}
		h := v.holding(e)
		one := Outstanding{Dimension: h.Dimension, Class: h.Class, Node: h.ID.Node, Tokens: h.Amount, Records: 1}
		if h.Void {
			one.Void = h.Amount
		}
		at, found := slices.BinarySearchFunc(list, one, compare)
		if !found {
			list = slices.Insert(list, at, one)
			continue
		}
		list[at].Tokens += one.Tokens
		list[at].Void += one.Void
		list[at].Records++
	}
	return list
}

func compare(a, b Outstanding) int {
	return cmp.Or(strings.Compare(a.Dimension, b.Dimension), strings.Compare(a.Class, b.Class),
		strings.Compare(a.Node, b.Node))
}

// Terms say what nodes may hold of a limit.
type Terms struct {
	Limit string
	// Version changes when what nodes hold of the limit is void.
	Version uint32
	Keyed   bool
	// Overrides: some keys have other numbers, see TermsOf.
	Overrides bool
	// Life is how long what they hold lives, Lease how long what they grant of it.
	Life, Lease time.Duration
	// Classes are in the order of the file. One without a name: the limit has none.
	Classes []string
	// Dimensions are in the order of the file.
	Dimensions []Dimension
}

// Dimension is what nodes may hold of a dimension.
type Dimension struct {
	Name string
	// Bursts are the effective bursts of the classes in tokens, 0 where nodes may hold
	// nothing for it.
	Bursts []int64
}

// Terms are those of all limits of which nodes may hold something, in no particular
// order; for a limit with overrides also where no key without one can be held of. They
// change with entries that change limits or members, and with those that have an
// EscrowVoided.
func (v View) Terms() iter.Seq[Terms] {
	return func(yield func(Terms) bool) {
		for lim := range v.state.AllLimits() {
			if !lim.Live() || !gives(lim.Limit) {
				continue
			}
			t, any := v.terms(lim, &lim.Now().Variant)
			if (any || t.Overrides) && !yield(t) {
				return
			}
		}
	}
}

// TermsOf are those of one key, with its own numbers where it has some. ok is false
// where nodes may hold nothing of it.
func (v View) TermsOf(limit, key string) (t Terms, ok bool) {
	lim := v.state.FindLimit(limit)
	if lim == nil || !lim.Live() || !gives(lim.Limit) {
		return Terms{}, false
	}
	return v.terms(lim, lim.Now().For(key))
}

func (v View) terms(lim *state.Limit, counts *lineage.Variant) (t Terms, ok bool) {
	t = Terms{
		Limit: lim.Name, Version: lim.Now().Number, Keyed: lim.Limit.GetKeyed(), Overrides: len(lim.Limit.GetOverrides()) > 0,
		Life: time.Duration(lim.Limit.GetEscrow()), Lease: time.Duration(lim.Limit.GetLease()), Classes: []string{""},
	}
	if classes := lim.Limit.GetClasses(); len(classes) > 0 {
		t.Classes = nil
		for _, c := range classes {
			t.Classes = append(t.Classes, c.GetName())
		}
	}
	for i := range counts.Dimensions {
		d := &counts.Dimensions[i]
		if !d.Live() {
			continue
		}
		one := Dimension{Name: d.Spec.GetName(), Bursts: make([]int64, d.Shape.Classes())}
		for class := range one.Bursts {
			if largeEnough(d.Shape, class, members(v.state)) {
				one.Bursts[class], ok = d.Shape.EffectiveBurst(class), true
			}
		}
		t.Dimensions = append(t.Dimensions, one)
	}
	return t, ok
}
