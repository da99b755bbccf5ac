// Package membership decides who may become a member, get or lose a vote, or go,
// and why not.
//
// It looks at the cluster as its leader sees it and returns one step, which
// somebody else carries out, as raft-autopilot does: decide, then act. Nothing
// here has a clock, a lock or a connection.
//
// The rules (R31 to R37): whoever comes is a learner first, and gets a vote once it
// has caught up and stayed so. A change that would leave fewer healthy voters than
// the voters after it need for a majority is refused; a learner has no part in
// that. Who leads hands over before it goes or loses its vote. A name belongs to
// one data directory at a time.
package membership
