// Package load asks as many callers do, at once or by a schedule, and counts what
// came of it: decisions, latencies from the intended start, and the servers'
// processor time.
//
// It knows no protocol: what is asked is a Side. A run is bounded by its Config and
// has joined every caller when it returns.
package load
