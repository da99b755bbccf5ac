// Package scale measures how grants from escrow grow with nodes that have an equal small
// share of a processor each, and what a grant costs by the active buckets, by the
// callers, and while snapshots of a large state are taken.
package scale
