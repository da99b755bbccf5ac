// Package echo is a bare gRPC service that answers what it was asked, and its
// client: what this machine's gRPC can do, beside which Quorlease is measured.
//
// It has two methods, as the authority has two ways in: one call an item, and one
// stream on which everybody who waits travels in one message.
package echo
