package grow

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/cluster/disk"
)

// steps are configurations by the index of their entry, from the logs of as many nodes
// as there were.
type steps map[uint64][]disk.Member

// read adds what the log in a node's data directory says. Two logs that say something
// else of one entry are an error; the end of one may not have committed, so it is read
// only once it has.
func (s steps) read(dir string) error {
	nothing := func(io.Reader) error { return nil }
	return disk.Read(dir, disk.Visitor{
		Snapshot: nothing,
		Entry:    func(uint64, uint64, []byte) error { return nil },
		Members: func(index, _ uint64, members []disk.Member) error {
			if known, ok := s[index]; ok && !slices.Equal(known, members) {
				return fmt.Errorf("entry %d has %v here and %v elsewhere", index, members, known)
			}
			s[index] = members
			return nil
		},
	})
}

// check holds every configuration to what one change may make of the one before.
func (s steps) check() error {
	var errs []error
	var before []disk.Member
	for _, index := range slices.Sorted(maps.Keys(s)) {
		after := s[index]
		if changes := differences(before, after); before != nil && len(changes) != 1 {
			errs = append(errs, fmt.Errorf("entry %d makes %d changes at once: %s",
				index, len(changes), strings.Join(changes, ", ")))
		}
		before = after
	}
	return errors.Join(errs...)
}

// differences are the members that came, went or changed.
func differences(before, after []disk.Member) (list []string) {
	known := map[string]disk.Member{}
	for _, m := range before {
		known[m.RaftID] = m
	}
	for _, m := range after {
		old, ok := known[m.RaftID]
		delete(known, m.RaftID)
		switch {
		case !ok && m.Voter:
			// A vote at once, which is a change more than one (R31).
			list = append(list, "+"+m.RaftID, "vote "+m.RaftID)
		case !ok:
			list = append(list, "+"+m.RaftID)
		case old != m:
			list = append(list, "~"+m.RaftID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		list = append(list, "-"+id)
	}
	return list
}
