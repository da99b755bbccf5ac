// Package queue orders acquires that wait, by class and fair share.
//
// An acquire waits at one place, a key of a limit, in the lane of its class. The
// lane has a head, which nothing that came later overtakes (G6). Who is head
// next is decided among the lane's clients by what they have had for their
// weight, and within a client by arrival. Lanes of one place wait side by side:
// each may take what its class is guaranteed (G5), what is free goes to the
// class listed first, and Keep says what an acquire must leave to others.
//
// The leader proposes a head when it is due, and says what became of it: Next,
// then Granted or Denied. Nothing polls.
//
// The package is pure: it starts no goroutine, takes no lock and reads no
// clock. A moment is a time.Duration of the leader's own steady clock, from any
// moment on. All that it keeps is bounded by Config and Terms (G10), and goes
// with the waiters.
package queue
