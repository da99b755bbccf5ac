package refuse

import (
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

// denials are the authority's reasons, and those that a client has of its own.
var denials = map[string]Reason{
	"RATE": Rate, "DEBT": Rate, "CONCURRENCY": Concurrency, "QUOTA": Quota, "PAUSED": Paused,
	"EXCEEDS_BURST": TooLarge, "ZERO_LIMIT": Forbidden, "RETRY_BUDGET": RetryBudget, "ATTEMPTS": Attempts,
	"BLOCKED": SpendCap, "QUEUE_FULL": QueueFull, "WAIT_EXPIRED": WaitExpired,
	"KEY_LIMIT": Capacity, "LEASE_LIMIT": Capacity, "LOCAL_CLOSED": Undecided, "LOCAL_SHARE": Undecided,
}

// gravest are the reasons that are told before others that refuse as well: those
// that don't pass by themselves.
var gravest = []Reason{RetryBudget, Attempts, SpendCap, TooLarge, Forbidden}

// Denied is the refusal of what was denied. Of several reasons it is the gravest,
// and else that of the longest wait. A wait in the own queue counts where it is
// longer than the hint.
func Denied(d *client.Decision) Refusal {
	var r Refusal
	grave := len(gravest)
	for i := range d.Denials {
		denial := &d.Denials[i]
		reason := denials[denial.Reason]
		if at := rank(reason); i == 0 || at < grave {
			r.Reason, grave = reason, at
		}
		if !denial.Never {
			r.Wait = max(r.Wait, denial.RetryAfter)
		}
		if denial.Limit != "" {
			r.Policies = append(r.Policies, policy(d, denial))
		}
	}
	if r.Reason.row().hint == minute {
		// What a budget asks for is configured.
		r.Wait = 0
	} else {
		r.Wait = max(r.Wait, d.Queue.ETA)
	}
	return r
}

// Passes says whether a limit alone refuses, which gives again by itself: waiting helps, and so
// does whatever the limit is not about.
func (r *Refusal) Passes() bool {
	switch r.Reason {
	case Rate, Concurrency, Quota, Paused, QueueFull, WaitExpired:
		return true
	default:
		return false
	}
}

func rank(reason Reason) int {
	for at, grave := range gravest {
		if grave == reason {
			return at
		}
	}
	return len(gravest)
}

// policy is what a denial says of its limit.
func policy(d *client.Decision, denial *client.Denial) Policy {
	p := Policy{Limit: denial.Limit, Dimension: denial.Dimension, Reason: denial.Reason}
	for _, left := range d.Remaining {
		if left.Limit == denial.Limit && left.Key == denial.Key && left.Dimension == denial.Dimension {
			p.Left, p.Known = left.Amount, true
		}
	}
	return p
}

// verdicts are what a provider's refusals are to clients, who don't hear them
// themselves. It is never their retry budget.
var verdicts = map[provider.Class]Reason{
	provider.Transient: Paused, provider.Acceleration: Paused, provider.Adapt: Paused,
	provider.Overload: Capacity, provider.HardQuota: SpendCap, provider.LongWindow: Quota,
	provider.TooLarge: TooLarge,
}

// Upstream is the refusal of what a provider refused. It is false for what is no
// refusal.
func Upstream(v *provider.Verdict) (Refusal, bool) {
	reason, ok := verdicts[v.Class]
	if !ok {
		return Refusal{}, false
	}
	r := Refusal{Reason: reason, Scope: string(v.Scope)}
	if v.Wait.Said {
		r.Wait = v.Wait.For
	}
	return r, true
}
