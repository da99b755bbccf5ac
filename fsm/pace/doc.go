// Package pace slows the time of one key down after its provider has asked for
// less, and lets it run at full speed again in steps.
//
// A key under a Pace has a time of its own. Until the pause is over that time
// stands still; then it goes by at Start parts per million of real time, and faster by Step
// after each Interval, until it is whole. The key's buckets are advanced by that time
// instead of the real one, so that the arithmetic of buckets need not know of it.
//
// The key's time is one function of authority time, of which differences are
// taken: Effective(a, c) is Effective(a, b) + Effective(b, c), however often somebody
// looks in between (G9). It never runs faster than real time, so that what bounds
// debits with real time bounds them here (G1). Everything is whole numbers.
//
// The package is pure: it has no clock (time is an argument), no lock, no float
// and no goroutine. A Pace never changes and may be used from many goroutines at
// once.
package pace
