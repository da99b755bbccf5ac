package queue

// heap keeps things in order, each knowing its own place, so that any of them
// can leave in O(log n).
type heap[T any] struct {
	list   []T
	before func(a, b T) bool
	// place is where a thing notes its index, -1 while it is not in the heap.
	place func(T) *int
}

func (h *heap[T]) len() int { return len(h.list) }

// first is the first in order. There must be one.
func (h *heap[T]) first() T { return h.list[0] }

func (h *heap[T]) has(x T) bool { return *h.place(x) >= 0 }

func (h *heap[T]) push(x T) {
	*h.place(x) = len(h.list)
	h.list = append(h.list, x)
	h.up(len(h.list) - 1)
}

// fix restores the order after x has changed.
func (h *heap[T]) fix(x T) {
	i := *h.place(x)
	h.up(i)
	h.down(*h.place(x))
}

// remove takes x out, if it is in.
func (h *heap[T]) remove(x T) {
	i := *h.place(x)
	if i < 0 {
		return
	}
	last := len(h.list) - 1
	h.swap(i, last)
	var none T
	h.list[last] = none
	h.list = h.list[:last]
	*h.place(x) = -1
	if i < last {
		moved := h.list[i]
		h.up(i)
		h.down(*h.place(moved))
	}
	if last == 0 {
		// A queue that was long must not keep its memory for ever.
		h.list = nil
	}
}

func (h *heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(h.list[i], h.list[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap[T]) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.list); child++ {
			if h.before(h.list[child], h.list[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

func (h *heap[T]) swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	*h.place(h.list[i]), *h.place(h.list[j]) = i, j
}
