// Package authority is a cluster in virtual time: what nodes decide with, without
// nodes.
//
// The state machine, the bytes of its log entries, the leader's queue and the
// retry counters of each node are the real ones. What carries operations between
// them is played, and small: operations gather while an entry is on its way, an
// entry takes as long as a commit does, and all replicas are one. Bench/sim plays
// everything that can go wrong with that; here nothing does.
//
// An Authority is for one goroutine: that of its stage.
package authority
