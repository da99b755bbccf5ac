package state

import (
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/record"
)

// MaxControls bounds the keys that are under control (G10). With the longest names
// they are a little more than a kilobyte each.
const MaxControls = 10_000

// Control is a record of what feedback did to a key, at work. It is replaced as a
// whole, so that it is not touched and sealed.
type Control struct {
	record.Control
	generation uint32
	place      int32
	digest     uint64
}

// Key, Generation and Clone are for the table, Place and Before for the queue.
func (c *Control) Key() record.ControlID  { return c.ID }
func (c *Control) Generation() *uint32    { return &c.generation }
func (c *Control) Place() *int32          { return &c.place }
func (c *Control) Before(o *Control) bool { return c.ID.Compare(&o.ID) < 0 }

func (c *Control) Clone() *Control {
	clone := *c
	return &clone
}

// ControlOf is what feedback did to a key, nil for nothing or where k is nil. It
// must not be changed.
func (s *State) ControlOf(k *Key) *record.Control {
	if k == nil || !k.controlled {
		return nil
	}
	return &s.controls.Find(record.ControlID{Limit: k.LimitID, Key: k.Name}).Control
}

// Controlled is the number of keys that are under control, Blocked of those that a
// person has to clear.
func (s *State) Controlled() int { return s.controls.Len() }
func (s *State) Blocked() int    { return s.blocked }

// SetControl makes c what feedback did to the key, which ChangeKey returned: it has
// lived up to now by what was before. The caller sees to it that there are at most
// MaxControls.
func (s *State) SetControl(k *Key, c record.Control) {
	one := s.controls.Find(c.ID)
	if one == nil {
		one = &Control{Control: c}
		s.controls.Insert(one)
		k.controlled = true
		lim := s.limitsByID[c.ID.Limit]
		if lim.controlled == nil {
			lim.controlled = make(map[string]bool)
		}
		lim.controlled[c.ID.Key] = true
	} else {
		s.sum -= one.digest
		s.countBlocked(&one.Control, -1)
		own := s.controls.Own(one)
		if own != one {
			s.dueControls.Renew(own)
		}
		one = own
		one.Control = c
	}
	s.countBlocked(&c, 1)
	one.digest = c.Sum()
	s.sum += one.digest
	s.dueControls.Set(one, int64(c.Due()))
}

// DropControl lets the key live by real time from now on.
func (s *State) DropControl(lim *Limit, k *Key) {
	s.ChangeKey(lim, k).controlled = false
	delete(lim.controlled, k.Name)
	one := s.controls.Find(record.ControlID{Limit: k.LimitID, Key: k.Name})
	s.sum -= one.digest
	s.countBlocked(&one.Control, -1)
	s.dueControls.Remove(one)
	s.controls.Remove(one)
}

func (s *State) countBlocked(c *record.Control, by int) {
	if c.Blocked {
		s.blocked += by
	}
}

// DropControls drops all controls of a limit, and returns what they were in the
// order of their keys.
func (s *State) DropControls(lim *Limit) []record.Control {
	dropped := s.controlsOf(lim)
	for i := range dropped {
		s.DropControl(lim, s.FindKey(lim.ID, dropped[i].ID.Key))
	}
	return dropped
}

func (s *State) controlsOf(lim *Limit) []record.Control {
	var list []record.Control
	// The order does not matter: the list is sorted below.
	for key := range lim.controlled {
		list = append(list, s.controls.Find(record.ControlID{Limit: lim.ID, Key: key}).Control)
	}
	slices.SortFunc(list, func(a, b record.Control) int { return a.ID.Compare(&b.ID) })
	return list
}

// ForgetControls lets keys go that are at full speed again, at most as many.
func (s *State) ForgetControls(most int) {
	for range most {
		c, at := s.dueControls.Top()
		if at > int64(s.Now) {
			return
		}
		lim := s.limitsByID[c.ID.Limit]
		s.DropControl(lim, s.FindKey(lim.ID, c.ID.Key))
	}
}

func (r *restoring) addControl(saved *logv1.SnapshotControl) error {
	c, err := record.LoadControl(saved, r.Now)
	if err != nil {
		return err
	}
	k := r.FindKey(c.ID.Limit, c.ID.Key)
	if k == nil || k.controlled || r.controls.Len() >= MaxControls {
		return frames.Corrupt("control of key %q of limit %d: there is no such key, it is there twice, or more than %d",
			check.Clip(c.ID.Key), c.ID.Limit, MaxControls)
	}
	r.SetControl(k, c)
	return nil
}
