package fsm

import (
	"iter"
	"math"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/spent"
	"github.com/quorlease/quorlease/fsm/state"
)

// KeyView is one key of a limit, by the dimension of which least is left.
type KeyView = spent.View

// KeyWalk finds the most spent keys of a limit a part at a time, so that entries can be
// applied between two steps however many keys there are. It keeps as many views as it
// is to show and nothing of the other keys. A key that is there from the first step to the
// last is seen once, each at the time of its step.
type KeyWalk struct {
	limit, prefix string
	top           int

	// machine and id are those of the limit that the walk has begun with, next is the
	// part that comes next.
	machine *Machine
	id      uint32
	next    int
	done    bool

	best spent.Top
	// Total counts the keys of the limit that differ from one never seen, Matching
	// those of them that begin with the prefix. They are whole when the walk is over.
	Total, Matching int
}

// keysAtOnce is how many keys a step looks at, and a part more.
const keysAtOnce = 500

// NewKeyWalk begins a walk over the keys of a limit with a prefix, to show at most top,
// at least 1.
func NewKeyWalk(limit, prefix string, top int) *KeyWalk {
	return &KeyWalk{limit: limit, prefix: prefix, top: top}
}

// Step takes the walk on at now, or at the machine's time where that is later. done says
// that it is over. A walk whose machine was replaced, or whose limit came anew, begins
// again. The error is a *Refused.
func (w *KeyWalk) Step(m *Machine, now bucket.Instant) (done bool, err error) {
	lim, err := m.namedLimit(w.limit)
	if err != nil {
		return false, err
	}
	if w.machine != m || w.id != lim.ID {
		*w = KeyWalk{limit: w.limit, prefix: w.prefix, top: w.top, machine: m, id: lim.ID}
	}
	now = max(now, m.state.Now)
	if w.next == 0 && lim.Keys() <= keysAtOnce {
		w.look(m, lim, lim.AllKeys(), now)
		w.done = true
	}
	for looked := 0; !w.done && looked <= keysAtOnce; w.next++ {
		looked += w.look(m, lim, m.state.KeysIn(w.next), now)
		w.done = w.next == m.state.KeyParts()-1
	}
	return w.done, nil
}

// Found are the keys, the most spent first. The walk is over after it.
func (w *KeyWalk) Found() []KeyView { return w.best.Sorted() }

// look looks at some keys, and returns how many there were of any limit.
func (w *KeyWalk) look(m *Machine, lim *state.Limit, keys iter.Seq[*state.Key], now bucket.Instant) (n int) {
	for k := range keys {
		n++
		if k.LimitID != lim.ID {
			continue
		}
		w.Total++
		if !strings.HasPrefix(k.Name, w.prefix) {
			continue
		}
		w.Matching++
		w.best.Take(m.keyView(lim, k, now), w.top)
	}
	return n
}

// keyView looks at one key. There may be a million.
func (m *Machine) keyView(lim *state.Limit, k *state.Key, now bucket.Instant) KeyView {
	t := m.targetOf(lim, k.Name, k)
	worst := KeyView{Key: k.Name, Left: math.MaxInt64}
	for i := range t.counts.Dimensions {
		d := &t.counts.Dimensions[i]
		if !d.Live() {
			continue
		}
		v := KeyView{Key: k.Name, Dimension: d.Spec.GetName(), Burst: d.Shape.Burst()}
		var left int64
		if d.Kind == logv1.Kind_KIND_CONCURRENCY {
			left = v.Burst - lim.InUse(k.Name, now)
			v.Level = max(0, left)
		} else {
			b := t.bucket(i, now)
			left, v.Level = b.Remaining(d.Shape), b.Level(d.Shape)
			for class := range d.Shape.Classes() {
				v.Debt += min(b.Debt(d.Shape, class), math.MaxInt64-v.Debt)
			}
		}
		if v.Left = spent.Part(left, v.Burst); v.Left < worst.Left {
			worst = v
		}
	}
	worst.OpenLeases, worst.Control, worst.At = int(k.Leases), t.control, now
	return worst
}
