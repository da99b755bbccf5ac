package report

import (
	"container/list"
	"slices"
	"strings"
	"sync"

	"github.com/quorlease/quorlease/client/failopen"
)

const (
	// namedMax is how many names have a book at a time: as many as have a retry budget of
	// their own (failopen.Config.ClientsMax).
	namedMax = 1000
	// namedRound is how many of them are told in one round: each is a report of its own.
	namedRound = 64
	// forgetMax is among how many books one is looked for that owes nothing.
	forgetMax = 16
)

// shelf has the books of those for whom a client works. It is safe for concurrent use.
type shelf struct {
	machine *failopen.Machine
	owe     func()

	mu struct {
		sync.Mutex
		// names are elements of byAge, which has the book that was used last first.
		names map[string]*list.Element
		byAge *list.List
		// owing are the books with something to tell, the longest waiting first.
		owing []*Book
	}
}

func newShelf(machine *failopen.Machine, owe func()) *shelf {
	s := &shelf{machine: machine, owe: owe}
	s.mu.names, s.mu.byAge = make(map[string]*list.Element), list.New()
	return s
}

// of is the book of a client.
func (s *shelf) of(client string) *Book {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.mu.names[client]; e != nil {
		s.mu.byAge.MoveToFront(e)
		return e.Value.(*Book)
	}
	if len(s.mu.names) >= namedMax {
		s.forgetLocked()
	}
	b := &Book{machine: s.machine, client: strings.Clone(client), owe: s.owe, shelf: s}
	s.mu.names[b.client] = s.mu.byAge.PushFront(b)
	return b
}

// forgetLocked forgets a book that was not used for long, if possible one that was told.
// Where none is, nobody has answered for some time, and what the oldest says is lost: his
// budget counts in this process all the same.
func (s *shelf) forgetLocked() {
	e := s.mu.byAge.Back()
	for range forgetMax {
		if e == nil {
			break
		}
		if s.closeLocked(e, false) {
			return
		}
		e = e.Prev()
	}
	s.closeLocked(s.mu.byAge.Back(), true)
}

// closeLocked forgets a book; where it owes something only if it has to.
func (s *shelf) closeLocked(e *list.Element, must bool) bool {
	b := e.Value.(*Book)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owesLocked() && !must {
		return false
	}
	if b.owesLocked() {
		s.mu.owing = slices.DeleteFunc(s.mu.owing, func(o *Book) bool { return o == b })
	}
	b.mu.gone = true
	b.mu.total, b.mu.retries, b.mu.throttled, b.mu.errors = 0, 0, 0, nil
	s.mu.byAge.Remove(e)
	delete(s.mu.names, b.client)
	return true
}

// queue puts books into line, unless they were forgotten.
func (s *shelf) queue(books ...*Book) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range books {
		b.mu.Lock()
		if !b.mu.gone {
			s.mu.owing = append(s.mu.owing, b)
		}
		b.mu.Unlock()
	}
}

// owes says whether there is something to tell.
func (s *shelf) owes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.owing) > 0
}

// next are up to most books with something to tell, and no longer in line: those that
// have waited longest.
func (s *shelf) next(most int) []*Book {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(most, len(s.mu.owing))
	next := s.mu.owing[:n:n]
	s.mu.owing = s.mu.owing[n:]
	if len(s.mu.owing) == 0 {
		s.mu.owing = nil
	}
	return next
}
