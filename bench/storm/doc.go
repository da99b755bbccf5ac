// Package storm replays the incidents that Quorlease answers, as numbers: each as
// it was, before, and as it is with Quorlease, after.
//
// A scenario runs in virtual time and follows from its seed alone: there is no
// clock, no goroutine and no other source of chance. Providers are the models of
// bench/provider. In an after run the state machine, the queue and the retry
// counters are the real ones (authority.go); what a gateway does (estimate,
// acquire, wait, settle, coalesce, come back after the hint and a random extra)
// is played. In a before run there are only clients and their habits.
//
// Every figure has the range that an independent simulation of the same scenario
// found. Numbers here may be floats: they are measured, and decide nothing.
package storm
