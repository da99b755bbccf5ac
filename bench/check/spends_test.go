package check

import (
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// story is a log that a test makes up, whether a state machine would have written it or
// not: 10 tokens and one more a second, leases of 2 s, escrow of 3 s.
type story struct {
	*Replay
	t *testing.T
}

func tell(t *testing.T) *story {
	t.Helper()
	s := &story{NewReplay(), t}
	s.becomes(10)
	return s
}

// becomes gives the limit a burst.
func (s *story) becomes(burst int64) {
	limit := fsmtest.Keyed("hot", fsmtest.Dimension(s.t, "requests", "1/1s", burst))
	limit.Lease, limit.Escrow = int64(2*time.Second), int64(3*time.Second)
	limit.GetDimensions()[0].MaxOpen = 0
	s.changed(&logv1.LimitChange{Name: "hot", LimitAfter: limit})
}

func (s *story) after(d time.Duration) { s.now += int64(d) }

func (s *story) grants(id string, n int64, paidBy uint64) {
	charge := fsmtest.Charge("hot", "a", "requests", n)
	answer := &logv1.AcquireResult{Granted: true, Ttl: int64(2 * time.Second)}
	if paidBy > 0 {
		charge.Escrow, answer.Paid = escrowID(paidBy), []uint32{0}
	}
	op := fsmtest.Acquire(id, charge)
	op.GetAcquire().Track = id != ""
	s.operation(op, &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: answer}})
}

func escrowID(sequence uint64) *logv1.EscrowID {
	return &logv1.EscrowID{Node: "n1.1", Boot: 7, Sequence: sequence}
}

func (s *story) lends(sequence uint64, n int64) {
	s.operation(
		&logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: &logv1.AskEscrow{
			Id: escrowID(sequence), Limit: "hot", Key: "a", Dimension: "requests", Amount: n,
		}}},
		&logv1.Result{Kind: &logv1.Result_Escrow{Escrow: &logv1.EscrowResult{
			Outcome: logv1.EscrowResult_OUTCOME_GRANTED, Amount: n, Life: int64(3 * time.Second),
		}}})
}

func (s *story) takesBack(sequence uint64, n int64) {
	s.operation(&logv1.Operation{Kind: &logv1.Operation_ReturnEscrow{ReturnEscrow: &logv1.ReturnEscrow{
		Returns: []*logv1.EscrowReturn{{Id: escrowID(sequence), Unspent: n}},
	}}}, &logv1.Result{})
}

func (s *story) releases(id string, n int64) {
	s.operation(&logv1.Operation{Kind: &logv1.Operation_Release{Release: &logv1.Release{LeaseId: []byte(id)}}},
		&logv1.Result{Kind: &logv1.Result_Lease{Lease: &logv1.LeaseResult{Settlements: []*logv1.Settlement{{
			Limit: "hot", Key: "a", Dimension: "requests", Amount: n, Refunded: n,
		}}}}})
}

// TestSeeded: what a broken authority would have written is found out, whatever else the
// log says.
func TestSeeded(t *testing.T) {
	t.Parallel()
	const one, other = "0123456789abcdef", "123456789abcdef0"
	for name, row := range map[string]struct {
		tell   func(s *story)
		broken string
	}{
		"all_of_it":                     {func(s *story) { s.grants(one, 10, 0) }, ""},
		"G1_a_grant_too_much":           {func(s *story) { s.grants(one, 10, 0); s.grants(other, 1, 0) }, "G1"},
		"G1_a_grant_doubled":            {func(s *story) { s.grants(one, 6, 0); s.grants(one, 6, 0) }, "G1"},
		"G1_T11_what_comes_back_counts": {func(s *story) { s.lends(1, 10); s.takesBack(1, 10); s.grants(one, 10, 0) }, ""},
		"G1_T9_a_grant_after_void": {func(s *story) {
			s.lends(1, 10)
			s.becomes(9)
			s.grants(one, 5, 1)
		}, "G1"},
		"G1_a_grant_before_it": {func(s *story) { s.lends(1, 10); s.grants(one, 5, 1) }, ""},
		// Escrow may be granted until its end, each grant spent until that of its lease.
		"G2_within_the_slack": {func(s *story) {
			s.lends(1, 10)
			s.after(5 * time.Second)
			s.grants(one, 5, 0)
		}, ""},
		"G2_spent_later_than_the_slack": {func(s *story) {
			s.spends.can(Bucket{"hot", "a", "requests"}, 10, s.now, 9*time.Second, true)
			s.debits.Debit(Bucket{"hot", "a", "requests"}, 10, s.now)
			s.after(9 * time.Second)
			s.grants(one, 9, 0)
		}, "G2"},
		"G2_what_was_released_is_not_spent": {func(s *story) {
			for range 9 {
				s.grants(one, 10, 0)
				s.releases(one, 10)
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tell(t)
			row.tell(s)
			var got string
			if lines := s.History().Problems(); len(lines) > 0 {
				got = lines[0][:2]
			}
			if got != row.broken {
				t.Errorf("%v, want %q", s.History().Problems(), row.broken)
			}
		})
	}
}

// TestG4Missing: a lease that was acknowledged is in the log, once.
func TestG4Missing(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.grants("0123456789abcdef", 1, 0)
	for range 2 {
		s.grants("0123456789abcdeg", 1, 0)
	}
	const there, twice, gone = "30313233343536373839616263646566", "30313233343536373839616263646567", "00"
	if lost, doubled := s.History().Missing([]string{there, twice, gone}); lost != 1 || doubled != 1 {
		t.Errorf("%d lost, %d doubled, want 1 and 1", lost, doubled)
	}
}
