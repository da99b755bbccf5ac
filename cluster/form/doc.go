// Package form makes a cluster out of N empty nodes, exactly once, in whatever
// order they start and wherever they crash.
//
// Every node asks the addresses it was given. When exactly N nodes know of one
// another and none belongs to a cluster, the one with the smallest Raft id
// draws a cluster id and writes the plan (the id and the N members) to its
// disk. It then asks every member to promise; a member writes the promise to
// its disk and refuses every other cluster from then on, so no two plans that
// share a node can both be promised by all. Only when all have promised is
// Raft bootstrapped, on that one node. After a crash the plan on disk is
// carried on, with the same id (R36).
//
// A node with an empty data directory that hears of a cluster never forms
// another: it belongs to that one if its Raft id does, and is refused
// otherwise. In particular it is refused where its name belongs to it and its
// incarnation doesn't: the disk that voted is lost (R37).
package form
