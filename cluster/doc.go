// Package cluster runs one node: consensus, membership, batching and
// forwarding.
//
// A Node owns everything with a goroutine, a disk or a peer. Operations enter
// by one door (Submit), become entries on the leader (propose.go), go through
// raft, and are applied by the state machine behind one adapter (raftfsm.go);
// answers come back as return values, by position. The order of starting and
// stopping is written down in node.go.
//
// What is *not* here: what an operation means (package fsm), what callers may
// ask (api/server), and who a node is and whom it talks to (the packages below
// this one).
package cluster
