// Package told tells the authority what providers answer, in the background, and hears
// from it what is closed.
//
// A Teller takes every answer and never holds its caller up. What providers refuse is told
// at once, spend caps first, and before any headers. Equal refusals within a moment are one
// report: ten thousand a second of one tenant cost one report a second. Of headers the
// newest counts, and they cost ten reports a second at most. What can't be told is kept,
// within bounds, and told later, unless its wait is over by then.
//
// To circuits a Teller is what gateways share (circuit.Shared). An answer is told once, by
// Tell, with the wait that the provider asked for: the authority closes what hears of it
// for all gateways. What a circuit publishes is a decision of this gateway, longer than
// that at times and about one tenant: it is told only to a limit that is named for it
// (Config.Circuits, Config.Deployments), and only where what the authority holds closed
// already does not last as long. What others found out comes back in the answers to
// reports and in denials (Denied), and Learn has it.
//
// A spend cap calls a person: once for each deployment and reason, until the authority
// says that somebody has cleared it.
//
// A Prober lets one gateway of all probe (circuit.Prober): who has the slot that the
// authority holds for a circuit.
package told
