// Package waiting is where acquires wait on the leader, between the door and the
// proposer.
//
// An acquire with a wait that is denied joins the queue (package queue) of the
// key that denies it longest. The desk looks at its replica when a head is due,
// and proposes it when the replica says that it can be paid: the state machine
// decides, and nobody else. What came back with an entry makes heads due earlier.
// Nothing polls.
//
// Who waits stays in the door, with a deadline of its own, and is answered by it
// once; what is proposed for it is an item of the desk's, a flight, whose answer
// is a grant for the waiter or puts it back at its place. So a waiter can leave at
// any moment, and the desk learns what its flight came to: a tracked grant that
// nobody waits for is released (T26).
//
// The queue is memory of one leader. It is emptied when the leadership is lost,
// and its waiters go to the next leader with the same lease id (T25).
package waiting
