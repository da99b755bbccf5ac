package waiting

import (
	"context"
	"maps"
	"slices"
	"time"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/queue"
)

// limitsShown bounds the limits of which State shows the busiest keys.
const limitsShown = 100

// State shows what waits at a key of a limit, by class; without a limit, at the key
// of each limit where most wait. It is empty where the node does not serve as the
// leader: the queue is the leader's memory.
func (d *Desk) State(limit, key string) []queue.ClassState {
	d.mu.Lock()
	defer d.mu.Unlock()
	if limit == "" {
		return d.mu.queue.Busiest(d.config.Elapsed(), limitsShown)
	}
	return d.mu.queue.State(d.config.Elapsed(), queue.Place{Limit: limit, Key: key})
}

// Wanted reports whether anybody waits at a key of a limit.
func (d *Desk) Wanted(limit, key string) bool {
	if d.waiting.Load() == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.queue.Wanted(queue.Place{Limit: limit, Key: key})
}

// Depths are what waits in each limit and class.
func (d *Desk) Depths() []queue.Depth {
	if d.waiting.Load() == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.queue.Depths(d.config.Elapsed())
}

// Shown is a state as a peer is told of it.
func Shown(states []queue.ClassState) []*peerv1.QueueClass {
	list := make([]*peerv1.QueueClass, 0, len(states))
	for _, s := range states {
		one := &peerv1.QueueClass{
			Limit: s.Place.Limit, Key: s.Place.Key,
			Class: s.Class, Waiting: s.Waiting, Oldest: int64(s.Oldest), Eta: int64(s.ETA),
			Tokens: make(map[string]int64, len(s.Tokens)),
		}
		for _, c := range s.Tokens {
			one.Tokens[c.Dimension] = c.Tokens
		}
		for _, c := range s.Clients {
			one.Clients = append(one.Clients, &peerv1.QueueClient{
				Client: c.Client, Waiting: c.Waiting, Weight: c.Weight,
			})
		}
		list = append(list, one)
	}
	return list
}

// askWithin is how long a leader may take to show its queues. The rest of what the
// caller wants to see is there already.
const askWithin = time.Second

// Asked is what waits at a key on the leader that is asked: nothing where it does not
// answer.
func Asked(ctx context.Context, leader peerv1.PeerClient, limit, key string) []queue.ClassState {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	response, err := leader.Queues(ctx, &peerv1.QueuesRequest{Limit: limit, Key: key})
	if err != nil {
		return nil
	}
	return seen(response.GetClasses())
}

// seen is the inverse of Shown.
func seen(list []*peerv1.QueueClass) []queue.ClassState {
	states := make([]queue.ClassState, 0, len(list))
	for _, one := range list {
		s := queue.ClassState{
			Place: queue.Place{Limit: one.GetLimit(), Key: one.GetKey()},
			Class: one.GetClass(), Waiting: one.GetWaiting(),
			Oldest: time.Duration(one.GetOldest()), ETA: time.Duration(one.GetEta()),
		}
		for _, d := range slices.Sorted(maps.Keys(one.GetTokens())) {
			s.Tokens = append(s.Tokens, queue.Cost{Dimension: d, Tokens: one.GetTokens()[d]})
		}
		for _, c := range one.GetClients() {
			s.Clients = append(s.Clients, queue.ClientState{
				Client: c.GetClient(), Waiting: c.GetWaiting(), Weight: c.GetWeight(),
			})
		}
		states = append(states, s)
	}
	return states
}
