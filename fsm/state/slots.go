package state

import (
	"bytes"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/store"
)

// slots are those of one key that are held, by when their leases end at the latest.
// They follow from the leases, and are no part of a snapshot or digest.
type slots struct {
	held  store.Queue[*holding]
	total int64
}

// holding is what one lease holds of one key.
type holding struct {
	lease  record.LeaseID
	amount int64
	limit  *Limit
	key    string
	place  int32
	// next is what the same lease holds of another key.
	next *holding
}

// Place and Before are for the queue.
func (h *holding) Place() *int32          { return &h.place }
func (h *holding) Before(o *holding) bool { return bytes.Compare(h.lease[:], o.lease[:]) < 0 }

// InUse is how many slots of a key are held at now. A lease whose time is over holds
// none, whether or not the sweep has come to it.
func (l *Limit) InUse(key string, now bucket.Instant) int64 {
	one := l.slots[key]
	if one == nil {
		return 0
	}
	used := one.total
	for h, at := range one.held.Ascend() {
		if bucket.Instant(at) > now {
			break
		}
		used -= h.amount
	}
	return used
}

// FreedBy is when as many slots of a key will have come back, if every lease is held
// until its end and none is renewed; lineage.Never where so many are not held.
func (l *Limit) FreedBy(key string, now bucket.Instant, amount int64) bucket.Instant {
	one := l.slots[key]
	if one == nil {
		return lineage.Never
	}
	for h, end := range one.held.Ascend() {
		at := bucket.Instant(end)
		if at <= now {
			continue
		}
		if amount -= h.amount; amount <= 0 {
			return at
		}
	}
	return lineage.Never
}

// holdSlots counts what an open lease holds of slots.
func (s *State) holdSlots(l *Lease) {
	for i := range l.Charges {
		c := &l.Charges[i]
		if !c.Slots() {
			continue
		}
		lim := s.limitsByID[c.LimitID]
		if lim == nil {
			continue
		}
		h := &holding{lease: l.ID, amount: c.Amount, limit: lim, key: c.KeyName, next: l.holds}
		one := lim.slots[h.key]
		if one == nil {
			if lim.slots == nil {
				lim.slots = make(map[string]*slots)
			}
			one = &slots{}
			lim.slots[h.key] = one
		}
		one.total += h.amount
		one.held.Set(h, int64(l.SettleUntil))
		l.holds = h
	}
}

// keepSlots moves what a lease holds to where its new end belongs.
func (l *Lease) keepSlots() {
	for h := l.holds; h != nil; h = h.next {
		h.limit.slots[h.key].held.Set(h, int64(l.SettleUntil))
	}
}

// freeSlots takes the slots of a lease back.
func (l *Lease) freeSlots() {
	for h := l.holds; h != nil; h = h.next {
		one := h.limit.slots[h.key]
		one.held.Remove(h)
		one.total -= h.amount
		if one.held.Len() == 0 {
			delete(h.limit.slots, h.key)
		}
	}
	l.holds = nil
}
