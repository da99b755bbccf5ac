// Package real plays storms in real time, up to sixty times as fast as they happened, with
// real processes: nodes, gateways, and a simulated provider on the loopback interface.
// Nodes and gateways are killed, and nodes cut off from one another, in the middle.
//
// What a machine takes for a commit, a round trip or an election does not go faster with
// the scenario: at 1:60 a second of the machine's is a minute of the scenario's.
package real
