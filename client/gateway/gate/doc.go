// Package gate is for a service that answers itself what a gateway would forward: it
// decides about calls over gRPC and HTTP as a gateway decides, in this order.
//
//   - Who asks, by a credential (package who), or 401 and UNAUTHENTICATED.
//   - Which attempt it is, by what markers say or what failed before (attempt).
//   - The retry budget of that client, and after it the limits that fit (charge). What
//     is refused by one of them is charged nothing.
//   - A refusal in the form that HTTP's or gRPC's clients obey (refuse): 429 with its
//     headers, or RESOURCE_EXHAUSTED with QuotaFailure, RetryInfo and pushback.
//
// A Gate retries nothing, knows no provider and has no circuit. Who only wants a limit
// in front of a handler, and knows its key, needs grpcmw or httpmw instead.
package gate
