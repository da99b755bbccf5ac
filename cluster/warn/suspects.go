package warn

import "sync"

// Suspects are the clients to look at: those with retries. Nobody else can cross
// a line, so that a round costs nothing for clients that don't fail. It is safe
// for concurrent use; its bound is that of the clients that the state machine
// keeps.
type Suspects struct {
	// Touched is signalled when there is a suspect whose counts have changed since it
	// was last listed.
	Touched chan struct{}

	mu sync.Mutex
	// names are all, touched those whose counts have changed.
	names, touched map[string]struct{}
}

// NewSuspects returns none.
func NewSuspects() *Suspects {
	return &Suspects{
		Touched: make(chan struct{}, 1), names: make(map[string]struct{}), touched: make(map[string]struct{}),
	}
}

// Add adds a client, whose counts have changed. Add and Drop of a client under
// one lock with the counts that they are about are in the order of the counts.
func (s *Suspects) Add(client string) { s.touch(client, true) }

// Touch says that the counts of a client have changed, which matters where it is
// a suspect.
func (s *Suspects) Touch(client string) { s.touch(client, false) }

func (s *Suspects) touch(client string, add bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.names[client]; !there {
		if !add {
			return
		}
		s.names[client] = struct{}{}
	}
	s.touched[client] = struct{}{}
	select {
	case s.Touched <- struct{}{}:
	default:
	}
}

// Drop removes a client.
func (s *Suspects) Drop(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, client)
	delete(s.touched, client)
}

// List appends all of them to list, or those alone whose counts have changed.
// None has changed then.
func (s *Suspects) List(list []string, changed bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.names
	if changed {
		from = s.touched
	}
	for name := range from {
		list = append(list, name)
	}
	clear(s.touched)
	return list
}
