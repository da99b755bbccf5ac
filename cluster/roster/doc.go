// Package roster knows who is a member, and changes it.
//
// It reads raft's configuration, both the newest, by which raft goes at once, and
// the one that this node has applied, which is certain. It keeps the replicated
// records of the members in step with it, notices that this node was removed, and
// carries out what cluster/membership decides: at the leader, one change at a time,
// whichever node was asked.
package roster
