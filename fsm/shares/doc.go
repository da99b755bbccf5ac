// Package shares is the book of what sessions were promised of limits that they share
// among themselves while nobody answers them, so that all who are cut off stay inside a
// limit together.
//
// An entry is one session at one limit. It keeps every promise that the session may
// still hold: from the one that it said it holds to the newest, of which the largest
// counts (T33, T50). A promise is at most an equal part, and at most what the largest
// promises to the others leave. A session that says good-bye is forgotten at once, one
// that is not heard of any more after Hold: until then it may be using its share.
//
// The book knows of outages too: times in which nobody stamped an entry, and those who
// were cut off spent what limits would have been refilled with (T51).
//
// The package is pure: no clock, no lock, no goroutine. One caller changes a Book; others
// may read it while it doesn't.
package shares
