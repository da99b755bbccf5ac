// Package bubble is a stage in virtual time: nodes, gateways and a provider in one
// process, inside a bubble of testing/synctest, where hours pass in seconds.
//
// Everything but the network is what runs in production: Raft with its log in files,
// the state machine, the servers, the client, the gateway. Connections are in memory,
// and can be cut. What a program does not pay for here is the time that a machine
// takes: an acquire costs none.
package bubble
