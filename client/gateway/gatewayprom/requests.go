package gatewayprom

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// figures are all but the histogram.
func figures() []figure {
	return slices.Concat(ofRequests(), ofTries(), ofBodies(), ofMoney(), ofShadow(), ofAttempts(), ofSharing(),
		ofReplays(), ofCircuits(), ofCharges(), ofTold(), ofEstimates())
}

func ofRequests() []figure {
	return []figure{
		counter("quorlease_gateway_requests_total", "Requests that came in.",
			func(s *gateway.Stats) uint64 { return s.Requests }),
		{
			name: "quorlease_gateway_refusals_total",
			help: "Requests that were refused, by the gateway or, after all tries, by a provider; by reason and HTTP status.",
			kind: prometheus.CounterValue, labels: []string{"reason", "status"}, read: refusals,
		},
		counter("quorlease_gateway_gone_total", "Requests whose client did not wait for the answer.",
			func(s *gateway.Stats) uint64 { return s.Gone }),
		counter("quorlease_gateway_cut_total", "Answers to clients that ended before their end.",
			func(s *gateway.Stats) uint64 { return s.Cut }),
	}
}

// refusals are by what clients are told. The status follows from the reason: it is there
// so that questions need no list of reasons.
func refusals(s *gateway.Stats) []part {
	parts := make([]part, 0, len(s.Refusals))
	for i, n := range s.Refusals {
		reason := refuse.Reason(i)
		parts = append(parts, part{
			float64(n), []string{strings.ToLower(reason.String()), strconv.Itoa(reason.Status())},
		})
	}
	return parts
}

func ofTries() []figure {
	return []figure{
		counter("quorlease_gateway_forwarded_total", "Requests sent to providers, each try counted.",
			func(s *gateway.Stats) uint64 { return s.Forwarded }),
		counter("quorlease_gateway_unlimited_total", "Requests that no limit fits, each try counted.",
			func(s *gateway.Stats) uint64 { return s.Unlimited }),
		counters("quorlease_gateway_provider_answers_total",
			"Answers of providers, by what they mean, each try counted.", "class", answers),
		counters("quorlease_gateway_failed_tries_total",
			"Tries that a provider refused and that might be made again, by their ending: "+
				"retried after a wait, or exhausted where tries, time or tokens for retries were used up.",
			"ending", func(s *gateway.Stats) []part {
				return []part{of("retried", s.Retried), of("exhausted", s.Exhausted)}
			}),
	}
}

func answers(s *gateway.Stats) []part {
	parts := make([]part, 0, len(s.Answers))
	for i, n := range s.Answers {
		parts = append(parts, of(strings.ToLower(provider.Class(i).String()), n))
	}
	return parts
}

func ofShadow() []figure {
	return []figure{
		{
			name: "quorlease_gateway_shadow_requests_total",
			help: "Requests that a shadow has forwarded, by what would have become of them: passed, refused, waited, or " +
				"undecided where that is not known; refused by reason.",
			kind: prometheus.CounterValue, labels: []string{"outcome", "reason"}, read: shadowed,
		},
		counter("quorlease_gateway_shadow_refused_there_total",
			"Requests that would have passed, and that were answered with 429 or 503.",
			func(s *gateway.Stats) uint64 { return s.Shadow.RefusedThere }),
	}
}

// shadowed are the outcomes, and refusals by every reason that there is.
func shadowed(s *gateway.Stats) []part {
	parts := []part{
		{float64(s.Shadow.Passed), []string{"passed", ""}},
		{float64(s.Shadow.Undecided), []string{"undecided", ""}},
		{float64(s.Shadow.Waited), []string{"waited", ""}},
	}
	for i := range s.Refusals {
		label := strings.ToLower(refuse.Reason(i).String())
		parts = append(parts, part{float64(s.Shadow.Refused[i]), []string{"refused", label}})
	}
	return parts
}

func ofBodies() []figure {
	return []figure{
		counter("quorlease_gateway_bodies_refused_total", "Bodies of requests for which there was no room.",
			func(s *gateway.Stats) uint64 { return s.Unread }),
		gauge("quorlease_gateway_bodies_held_bytes", "Bytes of bodies that are held until an answer begins.",
			func(s *gateway.Stats) float64 { return float64(s.Held) }),
	}
}
