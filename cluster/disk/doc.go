// Package disk watches what Raft stores its log on: for a call that hangs, for
// an error, for a flipped bit, and for space running out.
//
// Raft itself notices none of them in time. Its heartbeats have a goroutine of
// their own, so a leader whose disk hangs is never deposed (R12); an error of
// the store leaves its memory half changed, so the process has to stop (R14);
// it believes whatever it reads; and a full disk is such an error. What is done about it is the owner's
// business: this package reports each once.
package disk
