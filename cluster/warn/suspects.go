package warn

import "sync"

// Suspects are the clients to look at: those with retries. Nobody else can cross
// a line, so that a round costs nothing for clients that don't fail. It is safe
// for concurrent use; its bound is that of the clients that the state machine
// keeps.
type Suspects struct {
	// Hurry is signalled when a look should not wait for its turn.
	Hurry chan struct{}

	mu    sync.Mutex
	names map[string]struct{}
}

// NewSuspects returns none.
func NewSuspects() *Suspects {
	return &Suspects{Hurry: make(chan struct{}, 1), names: make(map[string]struct{})}
}

// Add adds a client. Add and Drop of a client under one lock with the counts
// that they are about are in the order of the counts.
func (s *Suspects) Add(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.names[client]; !there {
		s.names[client] = struct{}{}
	}
}

// Drop removes a client.
func (s *Suspects) Drop(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, client)
}

// List appends all of them to list.
func (s *Suspects) List(list []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.names {
		list = append(list, name)
	}
	return list
}

// Nudge asks for a look soon. It never blocks.
func (s *Suspects) Nudge() {
	select {
	case s.Hurry <- struct{}{}:
	default:
	}
}
