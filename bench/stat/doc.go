// Package stat draws keys and starting times for load, and sums up what came of
// it.
//
// It is pure: chance comes from the caller's source, time from its clock.
package stat
