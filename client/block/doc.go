// Package block does the arithmetic of block leases: tokens that a client holds
// and spends without asking anybody.
//
// The package is pure: it has no clock (time is an argument, on the holder's own
// clock), starts no goroutine and waits for nothing. A Block is safe for
// concurrent use and is spent by atomic operations, without a lock. A Size has
// one caller.
package block
