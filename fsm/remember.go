package fsm

import "github.com/quorlease/quorlease/fsm/record"

// Remembers reports whether a lease of that id, or the tombstone of one, is on
// record: an acquire with it is a repetition, and is answered as one.
func (m *Machine) Remembers(id []byte) bool {
	return len(id) == len(record.LeaseID{}) && m.state.FindLease(record.LeaseID(id)) != nil
}
