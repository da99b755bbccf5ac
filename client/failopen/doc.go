// Package failopen decides for a client while nobody answers it.
//
// A Machine watches the answers that a client gets (Observe) and says when it
// is away from the authority and when it is back, once each. While it is away,
// and for a single call that got no answer in time, it decides by the rules that
// it has learnt from the authority or was configured with (Decide): admit every
// first attempt, pace at this client's share of the limit, or refuse. Retries
// stay inside a local retry budget in every mode, so that no storm forms because
// the authority is away. What was admitted is counted, cumulatively, for the
// report that the authority books afterwards (Pending, Booked).
//
// The package has no clock (time is an argument), no goroutine and no network:
// the same calls with the same times give the same answers. Whoever owns a
// Machine probes the authority while it is not Healthy and observes what comes
// back; without probes an idle client stays away until it is used.
//
// A Machine is safe for concurrent use. A decision of open mode for a key that
// it knows allocates nothing.
package failopen
