// Package shadow forwards requests as they come and finds out beside that what a gateway would
// have done with them, for one that is tried next to a limiter that is there already.
//
// A Mirror has two halves for each request. One is a reverse proxy that changes nothing, refuses
// nobody and waits for nothing. The other is the gateway's own path with the same request: what it
// sends goes nowhere, and the answer that it gets is a copy of the one that came. So what is
// charged, settled and learned is what the real answer says, and what would have been refused is
// charged nothing.
//
// Nothing in the first half waits for the second. The second is bounded: by how many are undecided
// at once, by the bytes of bodies that are held, and by the bytes of answers that wait to be read.
// What is beyond a bound is forwarded all the same, and counted as undecided.
package shadow
