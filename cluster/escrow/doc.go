// Package escrow is one node's wallet: the tokens that committed entries moved to
// this node, from which it grants acquires by itself.
//
// The wallet spends, reserves, gives back, and works out what to ask for. It never
// decides that there are tokens: they come from the node's own apply of the entry
// that gave them (T10), and end by the node's own clock, counted from before they were
// first asked for (T8).
//
// What is *not* here: how asks reach the log, and the records of them (fsm/escrow).
// The package starts no goroutine; whoever owns a Wallet calls Step.
package escrow
