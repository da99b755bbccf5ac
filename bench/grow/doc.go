// Package grow lets a cluster of real nodes grow and shrink under load, and takes
// nodes away from it meanwhile. Afterwards it asks what was lost, and reads in the
// nodes' logs how the members changed.
package grow
