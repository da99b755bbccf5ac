// Package quorlease is the root of Quorlease, a replicated admission-control
// authority: gateways ask it whether a client may send so much to a provider
// now, and get a lease. It holds no code; it is the map.
//
// From the bottom up, each package knowing only those above it in this list:
//
//   - fsm/bucket does the arithmetic of one token bucket and its classes;
//     fsm/window counts events over sliding windows; fsm/retry decides whether a
//     client has spent its retry budget. Integers, no clock, the standard library.
//   - api/quorlease/log/v1 is what is written to disk, api/quorlease/peer/v1 what
//     nodes say to one another, api/quorlease/v1 the public protocol. Generated.
//   - fsm is the replicated state machine over them: the same entries give the
//     same state, on every node and architecture. fsm/lineage takes a limit
//     through its versions, fsm/state remembers, on tables of fsm/store, and sums
//     itself up with fsm/digest.
//   - cluster runs one node: the Raft log, the peers, the authority clock, batching
//     and forwarding. Everything with a goroutine, a disk or a peer is here.
//   - api/limitsfile reads the YAML that operators write; api/server and
//     api/httpapi translate between the protocol and a node, and decide nothing;
//     api/dashboard is the page that a browser gets.
//   - cmd/quorlease is the one binary.
//
// Beside them: client asks nodes, from programs of others, and client/gateway has the
// parts of a gateway in front of a provider; bench measures, deploy holds what
// operators start it with, docs says what it means, tools builds and checks it.
//
// The path of one acquire through these packages is docs/design/cluster.md; what
// holds whatever happens is docs/guarantees.md. The directions in which packages
// may import one another, and the other rules of the house, are tidy_test.go.
package quorlease
