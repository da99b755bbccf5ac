// Package compare lets the same callers ask Quorlease and what people use today for
// the same tokens, in interleaved rounds, beside a bare gRPC echo; then it kills
// everything and counts what each granted too many.
//
// It starts every process by itself, on free ports of loopback and in directories
// of its own, and ends each by its process id. Every run is bounded.
package compare
