// Package fsm is Quorlease's replicated state machine: the same entries give the
// same state.
//
// Machine.Apply takes a decoded log entry and returns a result for each of its
// operations, and effects: what others may want to know of. It reads no clock
// (the entry carries authority time), draws no lots, does no I/O, starts no
// goroutine and takes no lock; where a map is walked, what comes out does not
// depend on the order. So every node that applied the same entries has the
// same state, which Machine.Hash shows (G9).
//
// Apply is total: it answers anything that DecodeEntry lets through, with a
// Refusal where the question makes no sense, because an entry that has committed is
// applied on every node and can't be taken back (R27). What the servers
// checked is checked again here. Only a broken invariant panics, with the
// numbers: going on would be to diverge.
//
// One goroutine calls Apply, Snapshot and Restore. The reads may be called from
// many goroutines while none of these runs. A Snapshot is written out from any
// goroutine, while Apply goes on.
//
// Here is what the operations mean. What is remembered, and how it is hashed, frozen
// and saved, is package state; how a limit and its buckets live through changes
// is package lineage.
//
// The state is bounded (G10): keys, leases with their tombstones, limits and
// clients by Caps, everything else, such as reports, by constants.
package fsm
