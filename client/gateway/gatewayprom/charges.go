package gatewayprom

import "github.com/quorlease/quorlease/client/gateway"

func ofCharges() []figure {
	return []figure{
		counters("quorlease_gateway_charges_total",
			"Tries by who was asked for their charge: a permit that the gateway holds, or the authority.",
			"source", func(s *gateway.Stats) []part {
				return []part{of("permit", s.Charges.Permits), of("authority", s.Charges.Asked)}
			}),
		counter("quorlease_gateway_charges_short_total",
			"Tries for which the authority was asked because what the gateway holds was not enough.",
			func(s *gateway.Stats) uint64 { return s.Charges.Short }),
		counter("quorlease_gateway_charges_over_budget_total",
			"Tries that the gateway refused for their client's retry budget without asking the authority.",
			func(s *gateway.Stats) uint64 { return s.Charges.OverBudget }),
		counter("quorlease_gateway_charges_local_total",
			"Tries that were granted because nobody answered for the authority.",
			func(s *gateway.Stats) uint64 { return s.Charges.Local }),
		counter("quorlease_gateway_charges_abandoned_total", "Charges whose calls did not end in time.",
			func(s *gateway.Stats) uint64 { return s.Charges.Abandoned }),
		counters("quorlease_gateway_settlements_total",
			"Ends of leases, by what became of telling the authority; lost counts renewals that failed as well.",
			"outcome", func(s *gateway.Stats) []part {
				c := &s.Charges
				return []part{of("settled", c.Settled), of("dropped", c.Dropped), of("lost", c.Lost)}
			}),
		counter("quorlease_gateway_renewals_total", "Renewals of leases whose calls went on.",
			func(s *gateway.Stats) uint64 { return s.Charges.Renewed }),
		counter("quorlease_gateway_settlements_unanswered_total",
			"Settlements and renewals that nobody answered and that were tried once more.",
			func(s *gateway.Stats) uint64 { return s.Charges.Unanswered }),
		gauge("quorlease_gateway_settlements_waiting", "Leases that are to be settled or renewed.",
			func(s *gateway.Stats) float64 { return float64(s.Charges.Waiting) }),
		counter("quorlease_gateway_late_tokens_total",
			"Tokens that were not used and could not come back, because their block had ended before the call.",
			func(s *gateway.Stats) uint64 { return s.Charges.Late }),
		gauge("quorlease_gateway_leases", "Leases of calls that go on.",
			func(s *gateway.Stats) float64 { return float64(s.Charges.Leases) }),
		gauge("quorlease_gateway_limiters", "Limits and keys of which the gateway holds tokens, or wants to.",
			func(s *gateway.Stats) float64 { return float64(s.Charges.Limiters) }),
		gauge("quorlease_gateway_plans", "Kinds of work of which the gateway knows what they are charged.",
			func(s *gateway.Stats) float64 { return float64(s.Charges.Plans) }),
		counter("quorlease_gateway_plans_learned_total",
			"Plans of what kinds of work are charged that were made, or made anew.",
			func(s *gateway.Stats) uint64 { return s.Charges.Learned }),
	}
}
