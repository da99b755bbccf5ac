package front

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/client"
)

// slotting is a door whose callers take a slot of the nodes for each call by themselves,
// and give it back when they have their answer, as a gateway does: what the machine has to
// do is the same.
type slotting struct {
	*door
	client *client.Client
	// back are the slots that are on their way back.
	back sync.WaitGroup
}

// committed measures calls through the bare proxy, with a slot each.
func (p *place) committed(ctx context.Context, rate float64) (t Timed, err error) {
	c, err := client.New(client.Config{ //nolint:contextcheck // it is closed, not cancelled
		Client: "bench", Endpoints: p.endpoints(),
	})
	if err != nil {
		return t, err
	}
	s := &slotting{door: p.bare(), client: c}
	s.cpu = nil
	defer s.close()
	defer func() { _ = c.Close() }() //nolint:contextcheck // closing has its own time
	defer s.back.Wait()
	return p.config.measure(ctx, s, p.config.Callers, rate)
}

// Asker is that of one more caller.
func (s *slotting) Asker(index int) (load.Asker, error) {
	asker, err := s.door.Asker(index)
	if err != nil {
		return nil, err
	}
	return &taker{Asker: asker, slots: s}, nil
}

// taker is a caller that takes a slot before it asks.
type taker struct {
	load.Asker
	slots *slotting
}

// errNoSlot: the nodes have not given what they have more than enough of.
var errNoSlot = errors.New("no slot of the nodes")

// Ask takes a slot and then asks.
func (t *taker) Ask(ctx context.Context, key int) (load.Answer, error) {
	taken, err := t.slots.client.Acquire(ctx, client.Request{
		Track: true, Attributes: map[string]string{"deployment": slots},
	})
	if err != nil {
		return load.Answer{}, fmt.Errorf("take a slot: %w", err)
	}
	if !taken.Granted || taken.Source == client.Local {
		return load.Answer{}, errNoSlot
	}
	defer t.slots.back.Go(func() { _, _ = t.slots.client.Settle(context.WithoutCancel(ctx), taken.Lease) })
	return t.Asker.Ask(ctx, key)
}
