// Package circuit stops asking a provider that keeps saying no.
//
// Each tenant has a circuit at each deployment, for what it was throttled, and each
// deployment one for all, for its overload. A circuit opens after some 429s of one call
// or when most of what was sent of late has failed. It is open for a time, at least as
// long as the provider asked for, and somewhat longer by chance, so that not all of
// them come back together. Then one request, the probe, finds out whether it closes.
//
// A request waits between its decision and the provider: for a slot, in a queue, before
// a retry. A circuit that is looked at before the wait lets all that wait pass after it
// has opened (S2-24). So looking permits nothing. Only Call.Forward returns a Try, it
// looks anew each time, and the function that talks to the provider should ask for one:
//
//	call := board.Call(tenant, deployment, circuit.Shed)
//	if v := call.Look(now()); v.Action != circuit.Forward {
//		return refuse(v) // Fails fast: nobody waits for what is closed.
//	}
//	wait()
//	try, v := call.Forward(now())
//	if try == nil {
//		return refuse(v)
//	}
//	answer := send(try)
//	try.Done(now(), outcomeOf(answer), answer.wait)
//
// The package has no clock and no goroutine: time is an argument.
package circuit
