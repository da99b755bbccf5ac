// Package charge charges a gateway's calls, mostly without asking anybody.
//
// A call says what it is, and which limits that fits only the authority knows: the first
// call of its kind asks by attributes, and what it was charged is remembered for some
// seconds as the plan of all that say the same. What is asked for often is then paid from
// blocks of tokens that the gateway holds (client.Limiter), of every limit or of none. A
// call that these can't pay asks the authority, and waits in its queue: nothing waits
// here, and every denial is the authority's, but that of a retry budget.
//
// What asks the authority is one tracked lease of everything: limits of which nothing is
// held, and all of a plan that has slots. A slot costs a commit in any case, so that taking
// the rest with it costs nothing, is all or nothing at one moment, and holds no tokens while
// the queue is waited in. Such a lease is renewed for as long as its call lasts.
package charge
