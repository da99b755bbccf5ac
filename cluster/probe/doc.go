// Package probe tells a lost quorum from an ordinary election.
//
// Every node asks every other a few times a second who is there and whom it
// reaches. Fewer than a majority within anybody's reach is a lost quorum; a
// majority without a leader is an election, and a lost quorum only when it
// lasts. Each incident is reported once and resolved once (G8), and a node
// that has never seen a quorum reports nothing.
//
// The decision is a pure function of what was answered when (decide.go); the
// loop around it asks and keeps the answers (prober.go).
package probe
