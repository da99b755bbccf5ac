package fsm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// TestG1DebitBound: over random histories with changes of limits, deletions,
// refunds, restarts and late stamps no bucket ever gives more than its burst and
// its rates.
func TestG1DebitBound(t *testing.T) {
	t.Parallel()
	seeds := uint64(60)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("G1_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			m := fsm.New()
			world := fsmtest.Seeded(seed)
			world.Tame, world.Escrow = true, seed%2 == 1
			bound := fsmtest.NewBound(t)
			for i := range 300 {
				entry := world.Entry()
				results, _ := m.Apply(m.Index()+1, entry)
				bound.Entry(entry, results)
				if i%50 == 49 {
					m = fsmtest.Restored(t, m)
				}
			}
		})
	}
}

// TestG3AllOrNothing: a denial leaves the state hash as it was, and a grant
// debits every charge.
func TestG3AllOrNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run(fmt.Sprintf("G3_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			m := fsm.New()
			world := fsmtest.Seeded(seed)
			for range 150 {
				m.Apply(m.Index()+1, world.Entry())
				allOrNothing(t, m, world)
			}
		})
	}
}

func allOrNothing(t *testing.T, m *fsm.Machine, world *fsmtest.World) {
	t.Helper()
	op := world.Operation()
	acquire := op.GetAcquire()
	if acquire == nil {
		return
	}
	// What is due happens first, so that what is left is the acquire's doing.
	m.Apply(m.Index()+1, &logv1.Entry{})
	before := m.Hash()
	peek, peekErr := m.Peek(0, acquire)
	results, _ := m.Apply(m.Index()+1, &logv1.Entry{Operations: []*logv1.Operation{op}})
	answer := results[0].GetAcquire()
	if !answer.GetGranted() || answer.GetRepeated() {
		if m.Hash() != before {
			t.Fatalf("hash %016x, want %016x: %v changed something: %v", m.Hash(), before, op, results[0])
		}
		return
	}
	if peekErr != nil || !peek.GetGranted() {
		t.Fatalf("peek of %v said %v, %v, the acquire %v", acquire, peek, peekErr, answer)
	}
	for i, r := range answer.GetRemaining() {
		// It may be negative where another class owes.
		if r.GetTokens() >= peek.GetRemaining()[i].GetTokens() {
			t.Fatalf("%v: %v is left, before it was %v", acquire, r, peek.GetRemaining()[i])
		}
	}
}

// TestG7HonestNo: who waits exactly retry_after and is alone is granted; one
// millisecond earlier he is not.
func TestG7HonestNo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("G7_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			m := fsm.New()
			world := fsmtest.Seeded(seed)
			for range 100 {
				m.Apply(m.Index()+1, world.Entry())
				op := world.Operation()
				if op.GetAcquire() == nil {
					continue
				}
				answer, err := m.Peek(0, op.GetAcquire())
				if err == nil && !answer.GetGranted() {
					honest(t, m, op, answer)
				}
			}
		})
	}
}

func honest(t *testing.T, m *fsm.Machine, op *logv1.Operation, answer *logv1.AcquireResult) {
	t.Helper()
	denials := answer.GetDenials()
	wait := denials[0].GetRetryAfter()
	for i, d := range denials {
		if d.GetReason() == logv1.Reason_REASON_KEY_LIMIT {
			return // A hint: who else keeps his key is not known.
		}
		if d.GetRetryAfter()%int64(time.Millisecond) != 0 || d.GetRetryAfter() < 0 {
			t.Fatalf("%v: retry_after %d is not whole milliseconds", op, d.GetRetryAfter())
		}
		if i > 0 && wait != 0 && (d.GetRetryAfter() > denials[i-1].GetRetryAfter() || d.GetRetryAfter() == 0) {
			t.Fatalf("%v: the longest wait does not come first: %v", op, denials)
		}
	}
	never := slices.ContainsFunc(denials, func(d *logv1.Denial) bool { return d.GetRetryAfter() == 0 })
	if never != (wait == 0) {
		t.Fatalf("%v: never does not come first: %v", op, denials)
	}
	try := func(after int64) bool {
		later := fsmtest.Restored(t, m)
		results, _ := later.Apply(later.Index()+1, &logv1.Entry{
			Stamp: int64(m.Now()) + after, Operations: []*logv1.Operation{untracked(op)},
		})
		return results[0].GetAcquire().GetGranted()
	}
	if never {
		if try(int64(1000 * time.Hour)) {
			t.Fatalf("%v: was never to be granted and is: %v", op, denials)
		}
		return
	}
	if !try(wait) {
		t.Fatalf("%v at %d: not granted after %v: %v", op, m.Now(), time.Duration(wait), denials)
	}
	if try(wait - int64(time.Millisecond)) {
		t.Fatalf("%v at %d: granted before %v: %v", op, m.Now(), time.Duration(wait), denials)
	}
}

// untracked makes a try that no lease id and no cap on leases stands in the way
// of.
func untracked(op *logv1.Operation) *logv1.Operation {
	try := proto.CloneOf(op.GetAcquire())
	try.LeaseId, try.Track = fsmtest.LeaseID("try"), false
	return fsmtest.Operation(try)
}

// TestG4ExactlyOnce repeats every operation on leases at once, some time later
// and after a restart: the second has no effect, and the answer is that of the
// first but for the time that has passed.
func TestG4ExactlyOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run(fmt.Sprintf("G4_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			m := fsm.New()
			world := fsmtest.Seeded(seed)
			for range 200 {
				m.Apply(m.Index()+1, world.Entry())
				op := world.Operation()
				if op.GetAcquire().GetTrack() || op.GetSettle() != nil || op.GetRelease() != nil || op.GetRenew() != nil {
					m = twice(t, m, op)
				}
			}
		})
	}
}

func twice(t *testing.T, m *fsm.Machine, op *logv1.Operation) *fsm.Machine {
	t.Helper()
	first := apply(m, op)
	// A key that has become full may go.
	m.Apply(m.Index()+1, &logv1.Entry{})
	once := m.Hash()
	second := apply(m, op)
	if m.Hash() != once {
		t.Fatalf("%v: the second time changed the state:\n%v\n%v", op, first, second)
	}
	m = fsmtest.Restored(t, m)
	third := apply(m, op)
	if m.Hash() != once {
		t.Fatalf("%v: after a restart it changed the state:\n%v\n%v", op, first, third)
	}
	for _, again := range []*logv1.Result{second, third} {
		if a := again.GetAcquire(); a.GetGranted() && !a.GetRepeated() {
			t.Fatalf("%v: granted twice", op)
		}
		if got, want := answerOf(again), answerOf(first); got != want {
			t.Fatalf("%v: the answer became\n%s\nfrom\n%s", op, got, want)
		}
	}
	return m
}

func apply(m *fsm.Machine, op *logv1.Operation) *logv1.Result {
	results, _ := m.Apply(m.Index()+1, &logv1.Entry{Operations: []*logv1.Operation{op}})
	return results[0]
}

// answerOf is what has to stay the same: not the mark of a repetition.
func answerOf(r *logv1.Result) string {
	r = proto.CloneOf(r)
	if r.GetAcquire() != nil {
		r.GetAcquire().Repeated = false
	}
	if r.GetLease() != nil {
		r.GetLease().Repeated = false
	}
	return fmt.Sprint(r)
}
