// Package fallback decides when another model stands in for one that refuses, and for how
// much money.
//
// A model that is asked too early is the dearer one just when much is asked for. So it is
// never asked for a first 429, unless the class says that it can't wait (Immediate); only
// where the wait is longer than the class allows, and waiting is not sooner all the same; and
// only within a share of the day's money (Book).
//
// Everything here is a function of what it is given, or a table behind a lock. Nothing has a
// clock or starts a goroutine.
package fallback
