package told

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client"
)

// slots is an authority that has one slot for each key, for a minute.
type slots struct {
	mu sync.Mutex
	// held are the leases that have a slot.
	held  map[string]client.Lease
	takes time.Duration
	// fails is what is answered instead, local: nobody answers, and none: there is no slot.
	fails       error
	local, none bool
	// acquires, looks and returns count what was asked.
	acquires, looks, returns int
}

func newSlots() *slots {
	return &slots{held: make(map[string]client.Lease), takes: 5 * time.Millisecond}
}

func (s *slots) wait(ctx context.Context) error {
	select {
	case <-time.After(s.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slots) decideLocked(key string) *client.Decision {
	if s.none {
		return &client.Decision{Source: client.Consensus, Denials: []client.Denial{{Reason: "ZERO_LIMIT", Never: true}}}
	}
	if lease, is := s.held[key]; is && time.Now().Before(lease.Ends) {
		return &client.Decision{Source: client.Consensus, Denials: []client.Denial{{
			Reason: "CONCURRENCY", Limit: "circuit-probes", Key: key, RetryAfter: time.Until(lease.Ends),
		}}}
	}
	return &client.Decision{Granted: true, Source: client.Consensus}
}

func (s *slots) Acquire(ctx context.Context, r client.Request) (*client.Decision, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acquires++
	switch c := r.Charges[0]; {
	case s.fails != nil:
		return nil, s.fails
	case s.local:
		return &client.Decision{Granted: true, Source: client.Local, Lease: client.Lease{ID: "local", Local: true}}, nil
	case !r.Track || len(r.Charges) != 1 || c.Limit != "circuit-probes" || c.Dimension != "slots" || c.Amount != 1:
		return nil, fmt.Errorf("bad request %+v", r)
	default:
		d := s.decideLocked(c.Key)
		if d.Granted {
			d.Lease = client.Lease{ID: fmt.Sprint(s.acquires), Tracked: true, Ends: time.Now().Add(time.Minute)}
			s.held[c.Key] = d.Lease
		}
		return d, nil
	}
}

func (s *slots) Peek(ctx context.Context, _ string, charges ...client.Charge) (*client.Decision, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.fails != nil || s.local {
		return nil, client.ErrUnanswered
	}
	return s.decideLocked(charges[0].Key), nil
}

func (s *slots) Release(ctx context.Context, lease client.Lease) (*client.Settlement, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returns++
	for key, held := range s.held {
		if held.ID == lease.ID {
			delete(s.held, key)
			return &client.Settlement{State: "RELEASED"}, nil
		}
	}
	return nil, errors.New("no such lease")
}

// taken are how many slots are.
func (s *slots) taken() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, lease := range s.held {
		if time.Now().Before(lease.Ends) {
			n++
		}
	}
	return n
}
