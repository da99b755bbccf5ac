// Package contention measures many callers who want the same few keys, beside a
// bare gRPC echo in interleaved rounds, through faults where asked for, and checks
// afterwards that G1 and G2 held.
//
// It starts three node processes and an echo process of its own and ends each by
// its process id, or uses endpoints that it is given. Every run is bounded.
package contention
