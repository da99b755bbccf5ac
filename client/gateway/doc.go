// Package gateway stands between programs and a provider of language models, and asks
// an authority before it forwards.
//
// A Gateway is an http.Handler. What it gets is asked for by someone (package who), is
// some attempt at some work (attempt), may be the same as what is in flight (coalesce),
// is charged (charge), goes to a provider (provider) unless its circuit is open
// (circuit), and is settled with what it used (spent). Each of these is a package of its
// own that others may use; here they are put in order. What does not pass is refused in
// the form that the route's clients obey (refuse).
//
// The gateway alone retries: within one call, with a new charge and a new look at the
// circuit for each try, holding nothing while it waits. A program behind it should not.
//
// Of a request nothing is kept longer than it takes to answer it, except hashes under a
// key and numbers.
package gateway
