// Package authority is a cluster in virtual time: what nodes decide with, without
// nodes.
//
// The state machine, the bytes of its log entries, the leader's queue and the
// retry counters of each node are the real ones. What carries operations between
// them is played, and small: operations gather while an entry is on its way, an
// entry takes as long as a commit does. A leader may be killed, and a node cut off;
// bench/sim plays everything else that can go wrong.
//
// An Authority is for one goroutine: that of its stage.
package authority
