// Package disturb asks three real nodes for tokens in an open loop while it kills,
// stops and cuts off one of them after the other, and says what callers saw of it: of
// buckets that are not short, nothing; of those that are, one change of leader.
// Afterwards everything that was granted is held to G1 and G2.
//
// It starts its processes by itself and ends each by its process id. Every run is
// bounded.
package disturb
