// Package behind tries a gateway from where its programs stand: SDKs as they are
// published (bench/sdk), and clients that send what they like, over sockets, with a
// simulated provider (bench/upstream) behind the gateway and three real nodes beside
// it.
//
// There is nothing in it but tests. What each SDK does is compared with a table in
// testdata, which -update writes.
package behind
