// Package wire carries everything that nodes say to one another over one
// listener.
//
// Each connection starts with a handshake: the dialer says what the connection
// is for (Raft or gRPC), which cluster it belongs to and who it is; the
// acceptor answers with its own cluster and id, or with a refusal. No byte of
// Raft is parsed before that (R38), so a node of another cluster, a node that
// was removed and a port scanner are turned away at the door.
//
// What is *not* here: membership (the owner decides in Admit), encryption (a
// Network with TLS wraps the same listener and dialer), and retries (Raft and
// gRPC have their own).
package wire
