// Package calendar knows what time it is for people: the wall clock that decides
// calendar windows, and where in a time zone windows begin and end.
//
// The wall clock of a cluster is the median of the clocks of the voters that the
// leader has just heard, so that one clock which is a year ahead rolls no window
// (T6). Where fewer than a majority were heard there is none. It decides windows and
// nothing else.
//
// The leader works out windows, since zone databases differ from machine to machine,
// and the log gets their ends. A Keeper does that; the rest of the package is pure.
package calendar
