// Package permit measures local decisions: permits from a held block of tokens
// beside golang.org/x/time/rate, and what a client answers while nobody else does.
package permit
