// Package server translates between the public protocol and a node; it decides
// nothing.
//
// A call comes in through a gRPC server that bounds what one connection, one
// stream and one message may cost (bounds.go), passes authorize (auth.go), is
// checked and turned into an operation of the log once (check.go, request.go),
// and goes through the node's single door. The answer is turned back once
// (answer.go). What went wrong is said in the words of one table (errors.go).
//
// Session carries many callers over one stream: one goroutine reads, one writes,
// and nothing is started for an item (session.go).
//
// The same services answer calls that come as JSON over HTTP: api/httpapi calls
// Server.Call, in the same process, and is held to the same rights.
package server
