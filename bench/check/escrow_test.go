package check

import (
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// TestEscrow: what was moved to a node counts as debited, once, and comes back once.
func TestEscrow(t *testing.T) {
	t.Parallel()
	id := func(sequence uint64) *logv1.EscrowID {
		return &logv1.EscrowID{Node: "n1.1", Boot: 7, Sequence: sequence}
	}
	type step func(r *Replay)
	ask := func(sequence uint64, n int64, repeated bool) step {
		return func(r *Replay) {
			r.operation(
				&logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: &logv1.AskEscrow{
					Id: id(sequence), Limit: "hot", Key: "a", Dimension: "requests", Amount: n,
				}}},
				&logv1.Result{Kind: &logv1.Result_Escrow{Escrow: &logv1.EscrowResult{
					Outcome: logv1.EscrowResult_OUTCOME_GRANTED, Amount: n, Life: int64(3 * time.Second), Repeated: repeated,
				}}})
		}
	}
	giveBack := func(sequence uint64, n int64) step {
		return func(r *Replay) {
			r.operation(&logv1.Operation{Kind: &logv1.Operation_ReturnEscrow{ReturnEscrow: &logv1.ReturnEscrow{
				Returns: []*logv1.EscrowReturn{{Id: id(sequence), Unspent: n}},
			}}}, &logv1.Result{})
		}
	}
	acquire := func(n int64, paidBy uint64) step {
		return func(r *Replay) {
			charge := fsmtest.Charge("hot", "a", "requests", n)
			answer := &logv1.AcquireResult{Granted: true}
			if paidBy > 0 {
				charge.Escrow, answer.Paid = id(paidBy), []uint32{0}
			}
			r.operation(fsmtest.Acquire("", charge), &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: answer}})
		}
	}
	later := func(d time.Duration) step { return func(r *Replay) { r.now += int64(d) } }
	contended := func(r *Replay) {
		r.operation(&logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: &logv1.AskEscrow{
			Id: id(9), Limit: "hot", Key: "a", Dimension: "requests", Amount: 10,
		}}}, &logv1.Result{Kind: &logv1.Result_Escrow{Escrow: &logv1.EscrowResult{
			Outcome: logv1.EscrowResult_OUTCOME_CONTENDED, Amount: 10,
		}}})
	}
	for name, row := range map[string]struct {
		steps   []step
		broken  bool
		granted int64
	}{
		"G1_all_of_a_bucket":                  {[]step{ask(1, 10, false)}, false, 10},
		"G1_one_more_is_caught":               {[]step{ask(1, 10, false), acquire(1, 0)}, true, 11},
		"G1_a_repeated_answer_debits_nothing": {[]step{ask(1, 10, false), ask(1, 10, true)}, false, 10},
		"G1_T7_a_second_debit_under_one_id":   {[]step{ask(1, 10, false), ask(1, 10, false)}, true, 20},
		"G1_contended_takes_nothing":          {[]step{ask(1, 10, false), contended}, false, 10},
		"G1_what_came_back_can_be_had": {
			[]step{ask(1, 10, false), giveBack(1, 4), acquire(4, 0)}, false, 10,
		},
		"G1_T11_what_comes_back_twice_is_caught": {
			[]step{ask(1, 10, false), giveBack(1, 4), giveBack(1, 4), acquire(5, 0)}, true, 11,
		},
		"G1_more_than_there_was_is_caught": {
			[]step{ask(1, 4, false), giveBack(1, 9), acquire(10, 0), acquire(1, 0)}, true, 11,
		},
		"G1_T11_after_its_end_nothing_comes_back": {
			[]step{ask(1, 10, false), later(3 * time.Second), giveBack(1, 10), acquire(3, 0), acquire(1, 0)}, true, 14,
		},
		"G1_a_lease_that_it_paid": {[]step{ask(1, 10, false), acquire(10, 1)}, false, 10},
		"G1_T41_paid_and_back_is_caught": {
			[]step{ask(1, 10, false), acquire(8, 1), giveBack(1, 10), acquire(3, 0)}, true, 11,
		},
		"G1_paid_by_too_little_is_caught": {[]step{ask(1, 10, false), acquire(8, 1), acquire(8, 1)}, true, 18},
		"G1_paid_by_what_is_not_there":    {[]step{ask(1, 10, false), acquire(1, 2)}, true, 11},
		"G1_what_refills_while_it_is_away": {
			[]step{ask(1, 10, false), later(time.Second), acquire(1, 0)}, false, 11,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := NewReplay()
			r.changed(&logv1.LimitChange{
				Name: "hot", LimitAfter: fsmtest.Keyed("hot", fsmtest.Dimension(t, "requests", "1/1s", 10)),
			})
			for _, step := range row.steps {
				step(r)
			}
			h := r.History()
			if (h.Broken > 0) != row.broken || h.Granted["hot"] != row.granted {
				t.Errorf("broken at %d moments (%s), %d granted; want %v, %d",
					h.Broken, h.Worst, h.Granted["hot"], row.broken, row.granted)
			}
		})
	}
}
