package judge_test

import (
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// limit has one token a second, a burst of 2, leases of a second, and one token
// that can come back: a slack of two seconds.
func limit() *logv1.Limit {
	return &logv1.Limit{Name: "l", Target: 10_000, Lease: int64(time.Second), Dimensions: []*logv1.Dimension{{
		Name: "d", Amount: 1, Interval: int64(time.Second), Burst: 2, MaxOpen: 1,
	}}}
}

func charge(n int64) *logv1.Charge { return &logv1.Charge{Limit: "l", Dimension: "d", Amount: n} }

// court is a judge with a history in the making.
type court struct {
	*judge.Judge
	index uint64
}

func newCourt() *court {
	c := &court{Judge: judge.New()}
	c.commit(0, &logv1.Operation{}, &logv1.Result{Kind: &logv1.Result_Limits{Limits: &logv1.LimitsResult{
		Changes: []*logv1.LimitChange{{Name: "l", LimitAfter: limit()}},
	}}})
	return c
}

// commit is an entry that was stamped in time.
func (c *court) commit(at time.Duration, op *logv1.Operation, result *logv1.Result) {
	c.entry(at, at, 1, op, result)
}

func (c *court) entry(stamp, real time.Duration, stampedIn uint64, op *logv1.Operation, result *logv1.Result) {
	c.index++
	entry := &logv1.Entry{Stamp: int64(stamp)}
	var results []*logv1.Result
	if op != nil {
		entry.Operations, results = []*logv1.Operation{op}, []*logv1.Result{result}
	}
	c.Commit(&judge.Committed{
		Index: c.index, Term: 1, Now: bucket.Instant(stamp), Entry: entry, Results: results,
		Stamp: &judge.Stamp{Stamp: bucket.Instant(stamp), Real: real, Term: stampedIn},
	})
}

func (c *court) grant(at time.Duration, id string, n int64) {
	c.commit(at, acquire(id, n), granted(n))
}

func acquire(id string, n int64) *logv1.Operation {
	return &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: &logv1.Acquire{
		LeaseId: []byte(id), Track: true, Charges: []*logv1.Charge{charge(n)},
	}}}
}

func granted(n int64) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: &logv1.AcquireResult{
		Granted: true, Charges: []*logv1.Charge{charge(n)},
	}}}
}

func lease(r *logv1.LeaseResult) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Lease{Lease: r}}
}

func settle(id string) *logv1.Operation {
	return &logv1.Operation{Kind: &logv1.Operation_Settle{Settle: &logv1.Settle{LeaseId: []byte(id)}}}
}

func release(id string) *logv1.Operation {
	return &logv1.Operation{Kind: &logv1.Operation_Release{Release: &logv1.Release{LeaseId: []byte(id)}}}
}

var notFound = &logv1.Result{Kind: &logv1.Result_Refusal{Refusal: &logv1.Refusal{
	Cause: logv1.Refusal_CAUSE_LEASE_NOT_FOUND,
}}}

func settledWith(refunded int64) *logv1.Result {
	return lease(&logv1.LeaseResult{State: logv1.LeaseState_LEASE_STATE_SETTLED, Settlements: []*logv1.Settlement{{
		Limit: "l", Dimension: "d", Refunded: refunded,
	}}})
}

// report books tokens that a client has reported.
func (c *court) report(who string, tokens int64) {
	op := &logv1.ReportAdmitted{
		Client: who, Counts: []*logv1.AdmittedCount{{Limit: "l", Dimension: "d", Tokens: tokens}},
	}
	result := &logv1.AdmittedResult{Bookings: []*logv1.Booking{{Tokens: tokens}}}
	c.commit(0, &logv1.Operation{Kind: &logv1.Operation_ReportAdmitted{ReportAdmitted: op}},
		&logv1.Result{Kind: &logv1.Result_Admitted{Admitted: result}})
}

func (c *court) share() {
	c.Watch(limit(), "")
	c.Fallback(limit(), []string{"c0", "c1"}, 500_000)
}

// histories are short stories, the last step of which is allowed or breaks a rule.
var histories = map[string]struct {
	rule string
	tell func(c *court)
}{
	"G1_burst_and_refill_are_granted": {"", func(c *court) { c.grant(0, "a", 2); c.grant(time.Second, "b", 1) }},
	"G1_a_token_too_many":             {"G1", func(c *court) { c.grant(0, "a", 2); c.grant(time.Second-1, "b", 1) }},
	"G1_what_came_back_is_granted_again": {"", func(c *court) {
		c.grant(0, "a", 2)
		c.commit(0, settle("a"), settledWith(1))
		c.grant(0, "b", 1)
	}},
	"G2_within_the_slack": {"", func(c *court) { c.Watch(limit(), ""); c.Spend(0, "c0", charge(4), 4) }},
	"G2_beyond_the_slack": {"G2", func(c *court) { c.Watch(limit(), ""); c.Spend(0, "c0", charge(5), 5) }},
	"G2_over_an_interval": {"G2", func(c *court) {
		c.Watch(limit(), "")
		c.Spend(10*time.Second, "c0", charge(3), 3)
		c.Spend(11*time.Second, "c1", charge(3), 3)
	}},
	"G2_after_the_end": {"G2", func(c *court) {
		c.grant(time.Second, "a", 1)
		c.SpendLease(time.Second, "c0", charge(1), 1, judge.Grant{Until: int64(time.Second)})
	}},
	"G4_debited_twice": {"G4", func(c *court) { c.grant(0, "ta", 1); c.grant(9*time.Second, "ta", 1) }},
	"G4_two_answers": {"G4", func(c *court) {
		c.Answered(settle("ta"), settledWith(1))
		c.Answered(settle("ta"), settledWith(0))
	}},
	"G4_a_denial_is_not_remembered": {"", func(c *court) {
		c.Answered(acquire("ta", 1), &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: &logv1.AcquireResult{}}})
		c.Answered(acquire("ta", 1), granted(1))
	}},
	"G4_granted_and_not_found":      {"G4", func(c *court) { c.grant(0, "ta", 1); c.Answered(settle("ta"), notFound) }},
	"G4_released_and_granted":       {"G4", func(c *court) { c.Answered(release("ta"), notFound); c.grant(0, "ta", 1) }},
	"G9_two_states_at_one_index":    {"G9", func(c *court) { c.Hash("n0", 7, 1); c.Hash("n1", 8, 2); c.Hash("n2", 7, 2) }},
	"A20_a_share_of_burst_and_rate": {"", func(c *court) { c.share(); c.SpendLocal(0, "c0", charge(1), 1) }},
	"A20_more_than_a_share":         {"A20", func(c *court) { c.share(); c.SpendLocal(0, "c0", charge(2), 2) }},
	"A20_an_incident_begins_with_nothing": {"A20", func(c *court) {
		c.share()
		c.Away(10*time.Second, "c0", limit(), 500_000)
		c.SpendLocal(11*time.Second, "c0", charge(1), 1)
	}},
	"A20_what_the_incident_has_earned": {"", func(c *court) {
		c.share()
		c.Away(10*time.Second, "c0", limit(), 500_000)
		c.SpendLocal(12*time.Second, "c0", charge(1), 1)
	}},
	"T35_booked_twice": {"reports", func(c *court) {
		c.share()
		c.SpendLocal(0, "c0", charge(1), 1)
		c.report("c0", 1)
		c.report("c0", 1)
	}},
	"T35_never_booked": {"reports", func(c *court) { c.share(); c.SpendLocal(0, "c0", charge(1), 1); c.Reported() }},
	"T37_faster_than_real_time": {"clock", func(c *court) {
		c.entry(time.Second, time.Second, 1, nil, nil)
		c.entry(3*time.Second, 2*time.Second, 1, nil, nil)
	}},
	"T37_lost_and_found_again": {"clock", func(c *court) {
		c.entry(3*time.Second, 4*time.Second, 1, nil, nil)
		c.entry(5*time.Second, 5*time.Second, 1, nil, nil)
	}},
	"T3_time_stands_still": {"clock", func(c *court) {
		c.entry(3*time.Second, 3*time.Second, 1, nil, nil)
		c.Commit(&judge.Committed{
			Index: 9, Term: 1, Now: bucket.Instant(3 * time.Second), Entry: &logv1.Entry{Stamp: int64(2 * time.Second)},
			Stamp: &judge.Stamp{Stamp: bucket.Instant(2 * time.Second), Real: 4 * time.Second, Term: 1},
		})
	}},
	"T2_an_election_loses_time": {"clock", func(c *court) { c.Gained("n0", 1, 1, time.Second) }},
	"T39_a_leader_loses_time": {"clock", func(c *court) {
		c.Stamped(&judge.Stamp{Stamp: 0, Real: 0, Term: 2})
		c.Stamped(&judge.Stamp{Stamp: bucket.Instant(time.Second), Real: 2 * time.Second, Term: 2})
	}},
}

func TestHistories(t *testing.T) {
	t.Parallel()
	// Each is its own: the order does not matter.
	for name, history := range histories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCourt()
			history.tell(c)
			rule := ""
			if c.Broken != nil {
				rule = c.Broken.Rule
			}
			if rule != history.rule {
				t.Errorf("the judge says %v, want %q", c.Broken, history.rule)
			}
		})
	}
}
