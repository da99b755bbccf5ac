// Package events keeps what happened on one node, in a ring of bounded size,
// and lets any number of readers follow it at their own pace.
//
// An event stands either for an entry of the log (it carries the entry's
// index) or for something that only this node saw (index 0). So that both can
// be put in one order, every event also has a place: the highest index that
// had been published up to it. Resuming "from index I" gives every event
// whose place is I or later, so a node's own events between two entries come
// again rather than get lost.
//
// Publishing never waits for a reader. A reader holds a position and no
// buffer; one that is overtaken by the ring is told how many events it missed
// and goes on with the oldest that is kept.
//
// What is *not* here: which effects of the state machine become events, and
// sending alerts anywhere.
package events
