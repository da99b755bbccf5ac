// Package spent orders the keys of a limit by how much of them is spent. It is pure.
package spent

import (
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/record"
)

// View is one key of a limit, by the dimension of which least is left.
type View struct {
	Key, Dimension string
	// Level and Debt are in tokens; of slots Level is those that are free.
	Level, Debt, Burst int64
	// Left is Level less Debt as a part of Burst, in parts per million.
	Left int64
	// OpenLeases is how many leases of the key are not settled.
	OpenLeases int
	// Control is what feedback did to the key, nil for nothing. It must not be changed.
	// At is the time that it and the levels are of.
	Control *record.Control
	At      bucket.Instant
}

// Take keeps a view if it is among the first so many, at least 1, which has to be the
// same number each time.
func (t *Top) Take(v View, top int) {
	switch {
	case len(*t) < top:
		*t = append(*t, v)
		if len(*t) == top {
			heap.Init(t)
		}
	case compare(v, (*t)[0]) < 0:
		(*t)[0] = v
		heap.Fix(t, 0)
	}
}

// Sorted are they, the most spent first. Nothing is taken after it.
func (t Top) Sorted() []View {
	slices.SortFunc(t, compare)
	return t
}

// Part is left of burst in parts per million, rounded towards zero; 0 where there is
// no burst.
func Part(left, burst int64) int64 {
	if burst == 0 {
		return min(left, 0)
	}
	sign, size := int64(1), uint64(left)
	if left < 0 {
		sign, size = -1, -size
	}
	hi, lo := bits.Mul64(size, 1_000_000)
	if hi >= uint64(burst) {
		return sign * math.MaxInt64
	}
	part, _ := bits.Div64(hi, lo, uint64(burst))
	return sign * int64(min(part, math.MaxInt64))
}

// compare puts the most spent first. No two keys are equal.
func compare(a, b View) int {
	return cmp.Or(cmp.Compare(a.Left, b.Left), cmp.Compare(b.Debt, a.Debt), cmp.Compare(b.OpenLeases, a.OpenLeases),
		cmp.Compare(b.closed(), a.closed()), strings.Compare(a.Key, b.Key))
}

// closed is how closed feedback keeps the key.
func (v *View) closed() int {
	switch {
	case v.Control == nil:
		return 0
	case v.Control.Blocked:
		return 3
	case v.Control.Paused(v.At):
		return 2
	}
	return 1
}

// Top are the most spent keys so far, the last of them on top once there are enough.
type Top []View

func (t Top) Len() int           { return len(t) }
func (t Top) Less(i, j int) bool { return compare(t[i], t[j]) > 0 }
func (t Top) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// Push and Pop are never used: the heap keeps its size.
func (t *Top) Push(any) {}
func (t *Top) Pop() any { return nil }
