package gatewayprom

import (
	"github.com/quorlease/quorlease/client/gateway"
)

func ofMoney() []figure {
	return []figure{
		counters("quorlease_gateway_cost_total",
			"What calls have cost whose deployment has a price, in millionths of the unit of money, by who has "+
				"answered: the model that was asked for, or a fallback.",
			"by", func(s *gateway.Stats) []part {
				return []part{of("asked", s.Money.First), of("fallback", s.Money.Fallback)}
			}),
		gauge("quorlease_gateway_fallback_cost_held",
			"What calls of fallbacks that have not ended may cost, in millionths of the unit of money.",
			func(s *gateway.Stats) float64 { return float64(s.Money.Held) }),
		counters("quorlease_gateway_fallbacks_total",
			"Fallbacks that were thought of, by what became of them: answered, failed where it was refused or had "+
				"trouble itself, slow where waiting is sooner, short where the share of the money had nothing left.",
			"ending", func(s *gateway.Stats) []part {
				m := &s.Money
				return []part{of("answered", m.Answered), of("failed", m.Failed), of("slow", m.Slow), of("short", m.Short)}
			}),
	}
}

func ofAttempts() []figure {
	return []figure{
		counters("quorlease_gateway_attempts_total",
			"Requests by what their attempt was told from: first, declared in a header, inferred from work that "+
				"comes again, suspected of a client that fails.",
			"source", func(s *gateway.Stats) []part {
				a := &s.Attempts
				return []part{
					of("first", a.First), of("declared", a.Declared),
					of("inferred", a.Inferred), of("suspected", a.Suspected),
				}
			}),
		counter("quorlease_gateway_attempt_markers_invalid_total",
			"Headers that should count attempts and could not be used.",
			func(s *gateway.Stats) uint64 { return s.Attempts.Invalid }),
		counters("quorlease_gateway_attempts_forgotten_total",
			"What made room before its time, by kind: retries of it are missed.",
			"kind", func(s *gateway.Stats) []part {
				return []part{of("work", s.Attempts.Evicted), of("client", s.Attempts.ClientsEvicted)}
			}),
		gauges("quorlease_gateway_attempts_remembered",
			"What retries are told by, by kind: pieces of work and ids, and clients.",
			"kind", func(s *gateway.Stats) []part {
				return []part{of("work", count(s.Attempts.Entries)), of("client", count(s.Attempts.Clients))}
			}),
	}
}

func ofSharing() []figure {
	return []figure{
		counter("quorlease_gateway_duplicates_total",
			"Requests of clients whose same work was in flight, whatever became of them.",
			func(s *gateway.Stats) uint64 { return s.Attempts.Duplicates }),
		counter("quorlease_gateway_duplicates_executed_total",
			"Requests whose same work was in flight and that were sent all the same.",
			func(s *gateway.Stats) uint64 { return s.Shared.Duplicates + s.Repeated }),
		counter("quorlease_gateway_coalesced_total", "Requests that were answered with somebody else's answer.",
			func(s *gateway.Stats) uint64 { return s.Shared.Coalesced }),
		counter("quorlease_gateway_shared_total", "Work that was begun so that others could share its answer.",
			func(s *gateway.Stats) uint64 { return s.Shared.Executed }),
		counter("quorlease_gateway_shared_no_room_total", "Requests whose answer found no room to be shared from.",
			func(s *gateway.Stats) uint64 { return s.Shared.Alone }),
		counter("quorlease_gateway_shared_promoted_total",
			"Requests that shared a failure, and then did the work themselves.",
			func(s *gateway.Stats) uint64 { return s.Shared.Promoted }),
		counter("quorlease_gateway_shared_cut_total", "Requests that read a shared answer too slowly and were cut off.",
			func(s *gateway.Stats) uint64 { return s.Shared.Cut }),
		gauge("quorlease_gateway_shared_answers", "Answers in flight that are or may be shared.",
			func(s *gateway.Stats) float64 { return float64(s.Shared.Calls) }),
		gauge("quorlease_gateway_shared_readers", "Requests that read answers that are or may be shared.",
			func(s *gateway.Stats) float64 { return float64(s.Shared.Readers) }),
		gauge("quorlease_gateway_shared_bytes", "Bytes of shared answers that are kept.",
			func(s *gateway.Stats) float64 { return float64(s.Shared.Bytes) }),
	}
}

func ofReplays() []figure {
	return []figure{
		counter("quorlease_gateway_replayed_total",
			"Requests that came again under their idempotency key and were given the answer that they had.",
			func(s *gateway.Stats) uint64 { return s.Replays.Replayed }),
		counter("quorlease_gateway_replayable_total", "Answers that were kept for their idempotency keys.",
			func(s *gateway.Stats) uint64 { return s.Replays.Kept }),
		counters("quorlease_gateway_replays_lost_total",
			"Answers with an idempotency key that are not kept, by why: what comes again with it is done again. "+
				"evicted: they made room before their time; large: they were too large or found no room.",
			"reason", func(s *gateway.Stats) []part {
				return []part{of("evicted", s.Replays.Evicted), of("large", s.Replays.Large)}
			}),
		gauges("quorlease_gateway_idempotency_keys", "Idempotency keys, by state: in flight, or answered and kept.",
			"state", func(s *gateway.Stats) []part {
				return []part{of("in_flight", count(s.Replays.Flying)), of("kept", count(s.Replays.Answers))}
			}),
		gauge("quorlease_gateway_replay_bytes", "Bytes of answers that are kept or recorded for idempotency keys.",
			func(s *gateway.Stats) float64 { return float64(s.Replays.Bytes) }),
	}
}

func ofCircuits() []figure {
	return []figure{
		gauge("quorlease_gateway_circuits", "Circuits of tenants and deployments that have something to remember.",
			func(s *gateway.Stats) float64 { return float64(s.Circuits.Keys) }),
		gauge("quorlease_gateway_circuits_open", "Circuits that are not closed, also where nobody asks any more.",
			func(s *gateway.Stats) float64 { return float64(s.Circuits.Open) }),
		counter("quorlease_gateway_circuits_opened_total", "Openings of circuits, with those learned from others.",
			func(s *gateway.Stats) uint64 { return s.Circuits.Opened }),
		counter("quorlease_gateway_circuits_closed_total", "Closings of circuits.",
			func(s *gateway.Stats) uint64 { return s.Circuits.Closed }),
		counter("quorlease_gateway_circuits_untracked_total", "Failures that found no room: their circuit stays closed.",
			func(s *gateway.Stats) uint64 { return s.Circuits.Untracked }),
		counter("quorlease_gateway_circuit_probes_total", "Requests that were to find out whether a circuit may close.",
			func(s *gateway.Stats) uint64 { return s.Circuits.Probes }),
		counter("quorlease_gateway_circuit_probes_lost_total", "Probes of circuits that did not end in time.",
			func(s *gateway.Stats) uint64 { return s.Circuits.Lost }),
		counters("quorlease_gateway_circuit_refusals_total",
			"Tries that an open circuit held back right before they were sent, by what became of them.",
			"action", func(s *gateway.Stats) []part {
				return []part{of("shed", s.Circuits.Shed), of("deferred", s.Circuits.Deferred)}
			}),
	}
}

func ofTold() []figure {
	return []figure{
		counters("quorlease_gateway_feedback_total",
			"Answers of providers that the authority should know of, by what became of them.",
			"outcome", func(s *gateway.Stats) []part {
				t := &s.Told
				return []part{
					of("told", t.Told), of("merged", t.Merged), of("stale", t.Stale), of("lost", t.Lost),
					of("refused", t.Refused),
				}
			}),
		counter("quorlease_gateway_feedback_unheard_total", "Answers of providers that were told and that no limit heard.",
			func(s *gateway.Stats) uint64 { return s.Told.Unheard }),
		counter("quorlease_gateway_feedback_reports_total", "Reports to the authority of what providers answered.",
			func(s *gateway.Stats) uint64 { return s.Told.Reports }),
		counter("quorlease_gateway_feedback_failed_total", "Reports to the authority that were not answered.",
			func(s *gateway.Stats) uint64 { return s.Told.Failed }),
		counter("quorlease_gateway_feedback_asked_total", "Questions to the authority what is still closed.",
			func(s *gateway.Stats) uint64 { return s.Told.Asked }),
		counter("quorlease_gateway_feedback_learned_total", "News that circuits got of what others have closed.",
			func(s *gateway.Stats) uint64 { return s.Told.Learned }),
		gauge("quorlease_gateway_feedback_waiting", "Answers of providers that wait to be told.",
			func(s *gateway.Stats) float64 { return float64(s.Told.Waiting) }),
		gauge("quorlease_gateway_spend_caps", "Spend caps of deployments that nobody has cleared.",
			func(s *gateway.Stats) float64 { return float64(s.Told.Capped) }),
	}
}

func ofEstimates() []figure {
	return []figure{
		gauge("quorlease_gateway_estimate_margin_ratio",
			"Suggested margin: the part of an estimate to keep free so that 99 of 100 requests stay within it, "+
				"0.25 until 1000 were seen.",
			func(s *gateway.Stats) float64 {
				part, _ := s.Estimates.Margin()
				return part
			}),
	}
}

// count is a number of things that are there.
func count(n int) uint64 { return uint64(max(0, n)) }
