package session

import (
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// state is how far a call is.
type state int

const (
	// queued: nothing of it was sent.
	queued state = iota
	// sent: it is in a message that was, or is being, sent.
	sent
	// abandoned: it was sent, and its caller does not wait any more.
	abandoned
	// finished: its outcome is known.
	finished
)

// call is one operation under way and the caller who waits for it.
type call struct {
	item *quorleasev1.RequestItem
	// size is what the item adds to a message, in bytes, at most.
	size int
	// deadline is the caller's, if bounded.
	deadline time.Time
	bounded  bool
	// done has room for one signal: answer or err is set.
	done chan struct{}

	// What follows is guarded by the session's mutex until done was signalled.

	seq   uint64
	state state
	// untold: it is abandoned, and the node is to be told of it. Until that was
	// sent or given up its seq must not be used again: the next one who has it
	// would be cancelled.
	untold bool
	answer *quorleasev1.ResponseItem
	err    error
}

// fail hands an error to the caller, if there is one still.
func (c *call) fail(err error) {
	if c.resolve(nil, err) {
		c.done <- struct{}{}
	}
}

// resolve sets the outcome. Where it says that the caller waits, done is to be signalled.
func (c *call) resolve(answer *quorleasev1.ResponseItem, err error) (waits bool) {
	waits = c.state != abandoned
	c.state, c.answer, c.err = finished, answer, err
	return waits
}
