// Package check says whether a history kept the bounds that the guarantees
// promise: G1 from a stopped node's log by its stamps, G1 and G2 from outside by
// the clients' clock.
//
// It has an arithmetic of its own (math/big) and asks no bucket: a fault in the
// state machine must not hide itself.
package check
