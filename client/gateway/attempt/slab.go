package attempt

// slab is places that are used again. It grows to its largest use and stays.
type slab[T any] struct {
	list []T
	free []int32
}

// take returns a place, with what was last in it.
func (s *slab[T]) take() int32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	var fresh T
	s.list = append(s.list, fresh)
	return int32(len(s.list) - 1)
}

// links are the neighbours in an order.
type links struct{ before, after int32 }

// order is a list of places in a slab. Its methods are told where what it orders keeps
// the links, because an entry stands in two orders.
type order[T any] struct {
	first, last int32
	n           int
}

func newOrder[T any]() order[T] { return order[T]{first: none, last: none} }

func clientAge(c *client) *links  { return &c.byAge }
func entryAge(e *entry) *links    { return &e.byAge }
func entryClient(e *entry) *links { return &e.byClient }

// push puts i first.
func (o *order[T]) push(of func(*T) *links, list []T, i int32) {
	*of(&list[i]) = links{none, o.first}
	if o.first != none {
		of(&list[o.first]).before = i
	} else {
		o.last = i
	}
	o.first = i
	o.n++
}

func (o *order[T]) remove(of func(*T) *links, list []T, i int32) {
	at := *of(&list[i])
	if at.before != none {
		of(&list[at.before]).after = at.after
	} else {
		o.first = at.after
	}
	if at.after != none {
		of(&list[at.after]).before = at.before
	} else {
		o.last = at.before
	}
	o.n--
}

// touch moves i to the front.
func (o *order[T]) touch(of func(*T) *links, list []T, i int32) {
	if o.first != i {
		o.remove(of, list, i)
		o.push(of, list, i)
	}
}
