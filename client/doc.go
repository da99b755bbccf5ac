// Package client asks a Quorlease authority for decisions, and goes on deciding
// when nobody answers.
//
// Acquire decides one request: it always answers within its deadline (G8). A
// Limiter answers from leases of tokens that it holds, in nanoseconds, in the
// manner of golang.org/x/time/rate.
//
// A client finds all nodes from any one of them and asks a healthy one. An
// election costs callers a wait, never an error. When no node grants and no
// majority can be reached, the client decides by what each limit says for that
// case (on_quorum_loss: open, share, closed), marks those answers Local, raises
// one alert, and reports what it admitted once the authority is back.
//
// What is not here: Prometheus metrics are in client/clientprom, interceptors and
// middleware in client/grpcmw and client/httpmw.
package client
