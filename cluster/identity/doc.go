// Package identity keeps who a node is: a data directory, the exclusive right
// to it, and a small file with the node's name, its incarnation and the
// cluster it belongs to.
//
// The incarnation is drawn once for a data directory. A node whose disk was
// lost therefore comes back under another Raft id, and can never vote again in
// a term in which it has voted, or deny entries that it has acknowledged (R36,
// R37). A promise to belong to one cluster is on disk before it is given.
//
// What is *not* here: what Raft stores beside it, and the decision what to
// promise (package form).
package identity
