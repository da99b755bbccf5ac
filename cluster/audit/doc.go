// Package audit writes one line of JSON for each decision into a file, off the
// decision path.
//
// A decision is copied into a queue of bounded length, and one goroutine writes.
// Nobody ever waits for the file: what finds the queue full is dropped and
// counted. A file that can't be written costs lines, which are counted, and
// nothing else.
//
// What is *not* here: which answers are decisions, and what limits them.
package audit
