// Package middle kills the leader of three real nodes in the middle of everything that
// takes time: leases that are being settled, slots that are held, acquires that wait,
// pauses that are being reported, and a client that crosses its retry budget. After
// each kill it asks what of it still holds.
package middle
