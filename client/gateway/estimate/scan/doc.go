// Package scan reads JSON (RFC 8259) as it comes in, piece by piece, and holds none of
// it: a request or an answer of megabytes costs the memory of its depth.
//
// It is pushed, so that a body can be looked at while it is on its way to somebody else,
// and it is the only thing here that knows where a member begins and ends in bytes. It
// starts no goroutine. A Scanner has one caller.
package scan
