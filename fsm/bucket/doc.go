// Package bucket does the arithmetic of one token bucket and its classes.
//
// A bucket holds free tokens and, for each priority class of its limit, a
// sub-bucket of tokens that only this class may take, and a debt that this
// class has to pay before it is served again. Everything is whole numbers: one
// token is a number of units (Shape.Unit), chosen so that a nanosecond of
// refill is a whole number of units too. Nothing is lost and nothing is gained
// by looking at a bucket often: advancing by a and then by b is advancing by
// a + b (T47).
//
// The meaning is defined nanosecond by nanosecond (see Bucket.nanosecond) and
// computed in leaps from one breakpoint to the next (see flow). A breakpoint is
// the moment when a debt has been paid or a sub-bucket is full; there are at
// most two for each class, so that a leap over years costs as much as one over
// a millisecond.
//
// The package is pure: it has no clock (time is an argument), no lock, no float
// and no goroutine, and it panics only if it is called with a class that the
// shape does not have. A Shape never changes and may be used from many
// goroutines at once. A Bucket must be guarded by its owner; assigning a Bucket
// shares its sub-buckets, so copy it with Clone.
//
// The methods of Bucket that take, give back or ask for tokens act at
// Bucket.Last, the authority time that the bucket has reached. Advance it
// first.
package bucket
