// Package refuse says no so that clients obey.
//
// A Refusal is why a request does not pass. It becomes an HTTP answer in the form
// that the route's clients understand (HTTP), or a gRPC status with its trailer
// (GRPC). What clients of language models do with an answer decides what it says:
//
//   - They obey x-should-retry before anything else, and some ignore a wait of a
//     minute or more and come back in seconds. So what will pass soon has a hint below
//     a minute, and what will not says that nobody should try.
//   - A spent retry budget asks for a minute all the same, for whoever obeys nothing
//     else, and alone has x-retry-budget-exceeded: it means that the client is the
//     problem, and not that the model is busy.
//   - A spend cap has no hint. It does not end by waiting.
//   - Clients that were told one time come back in one instant, so hints are longer
//     than the wait by a random part.
//
// The package is pure: chance is an argument. Everything is safe for concurrent use.
package refuse
