// Package httpapi serves the public protocol as JSON over HTTP, for callers
// without gRPC: curl, dashboards, other languages.
//
// A request is turned into the message of the call that it stands for and goes
// through server.Server in the same process: the same checks, the same rights,
// the same errors. What HTTP adds is here: which path is which call (routes.go),
// what browsers must not be able to do (guard.go), bounds on bodies and time,
// and what only HTTP has: /healthz, /readyz, /metrics, and events as a stream
// that browsers can read (events.go).
package httpapi
