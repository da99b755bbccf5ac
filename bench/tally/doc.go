// Package tally notes the grants that clients saw and holds a run to G1 and G2: by the
// clients' clock, and by the logs of nodes that were stopped.
package tally
