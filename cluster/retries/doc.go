// Package retries is one node's part in the retry budgets: what it admitted and
// has not yet seen applied, and how much of a headroom it may use by itself.
//
// Deciding costs no commit. A node adds its own counts that its replica does
// not hold yet to those of the replica and asks the rule; a retry besides needs
// room in the node's part of the headroom, an N-th rounded up (T30, T49), so
// that N nodes that have not heard of one another stay within the bound of G12.
//
// The counts are reported cumulatively for each slice of the window since the
// process started, and the state machine takes the maximum, so that loss,
// repetition and order do no harm (T29). A count leaves this node's memory when
// its own replica has applied it, not when it was sent or acknowledged (T31),
// or when it has left the window by the node's own steady clock, which goes on
// when the node is cut off (T32).
package retries
