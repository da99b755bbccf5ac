package authority_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/bench/storm/authority"
)

// stand is an authority with one limit of one request a second and a burst of
// one, at which two may wait.
type stand struct {
	*stage.Stage
	*authority.Authority
	// log is what was answered, and when.
	log []string
}

func newStand() *stand {
	s := &stand{Stage: stage.New(1)}
	limit := authority.Limit("l", authority.Dimension("requests", 1, time.Second, 1))
	limit.Queue.Max = 2
	s.Authority = authority.New(s.Stage, 3, &logv1.ApplyLimits{
		Limits: []*logv1.Limit{limit}, RetryBudgets: []*logv1.RetryBudget{authority.Budget()},
	})
	return s
}

// ask acquires at a moment, and notes what becomes of it.
func (s *stand) ask(at time.Duration, name string, wait time.Duration, op *logv1.Acquire) {
	if op.Charges == nil {
		op.Charges = []*logv1.Charge{authority.Charge("l", "", "requests", 1)}
	}
	s.At(nil, at-s.Real(), func() {
		s.Acquire(&authority.Ask{Operation: op, MaxWait: wait, Done: func(a authority.Answer) {
			said := "granted"
			switch {
			case a.Repeated:
				said = "repeated"
			case !a.Granted:
				said = a.Denial.GetReason().String()
			}
			s.log = append(s.log, name+" "+said+" at "+s.Real().Round(100*time.Millisecond).String())
		}})
	})
}

func (s *stand) wants(t *testing.T, want ...string) {
	t.Helper()
	s.Run(time.Minute, func() bool { return false })
	if diff := cmp.Diff(want, s.log); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// TestNothingOvertakes: who does not wait is denied behind those who do, and they
// are served as tokens come.
func TestNothingOvertakes(t *testing.T) {
	t.Parallel()
	s := newStand()
	s.ask(0, "first", 0, &logv1.Acquire{})
	s.ask(0, "second", time.Minute, &logv1.Acquire{})
	s.ask(100*time.Millisecond, "hurried", 0, &logv1.Acquire{})
	s.ask(200*time.Millisecond, "third", time.Minute, &logv1.Acquire{})
	s.ask(300*time.Millisecond, "one too many", time.Minute, &logv1.Acquire{})
	s.ask(1500*time.Millisecond, "impatient", 100*time.Millisecond, &logv1.Acquire{})
	s.wants(t, "first granted at 0s", "hurried REASON_RATE at 100ms", "one too many REASON_QUEUE_FULL at 300ms",
		"second granted at 1s", "impatient REASON_WAIT_EXPIRED at 1.6s", "third granted at 2s")
}

// TestALeaseIDIsGrantedOnce: the same id is answered again and costs nothing; what
// can never be granted does not wait.
func TestALeaseIDIsGrantedOnce(t *testing.T) {
	t.Parallel()
	s := newStand()
	id := s.NewID()
	s.ask(0, "one", 0, &logv1.Acquire{LeaseId: id, Track: true})
	s.ask(time.Second, "again", 0, &logv1.Acquire{LeaseId: id, Track: true})
	s.ask(1100*time.Millisecond, "other", 0, &logv1.Acquire{LeaseId: s.NewID(), Track: true})
	s.ask(2*time.Second, "large", time.Minute, &logv1.Acquire{
		Charges: []*logv1.Charge{authority.Charge("l", "", "requests", 2)},
	})
	s.wants(t, "one granted at 0s", "again repeated at 1s", "other granted at 1.1s",
		"large REASON_EXCEEDS_BURST at 2s")
}

// TestBudgetOverNodes: a client that retries everything through three nodes in
// turn is stopped at about fifty, and another is none the worse.
func TestBudgetOverNodes(t *testing.T) {
	t.Parallel()
	s := newStand()
	admitted := 0
	for i := range 400 {
		s.At(nil, time.Duration(i)*20*time.Millisecond, func() {
			if s.Admit(i, "failing", min(uint32(i), 1)) == nil {
				admitted++
			}
			if denial := s.Admit(i, "healthy", 0); denial != nil {
				t.Errorf("a client that never retries is denied: %v", denial)
			}
		})
	}
	s.Run(10*time.Second, func() bool { return false })
	if admitted < 51 || admitted > 51+17 {
		t.Errorf("%d admitted, want 51 and at most what a node may admit unseen", admitted)
	}
}

// TestTheLeaderDies: who waited and who was about to be answered is answered once, after
// the election, and nothing is taken twice. A node that was away comes to the same state.
func TestTheLeaderDies(t *testing.T) {
	t.Parallel()
	t.Run("G4", func(t *testing.T) {
		t.Parallel()
		s := &stand{Stage: stage.New(1)}
		limit := authority.Limit("l", authority.Dimension("requests", 1, time.Second, 1))
		s.Authority = authority.NewApart(s.Stage, 3, &logv1.ApplyLimits{Limits: []*logv1.Limit{limit}})
		id := s.NewID()
		s.ask(5*time.Second, "flying", time.Minute, &logv1.Acquire{LeaseId: id, Track: true})
		s.ask(5*time.Second+500*time.Microsecond, "gathered", time.Minute, &logv1.Acquire{LeaseId: s.NewID(), Track: true})
		s.At(nil, 5*time.Second+time.Millisecond, func() { s.KillLeader(time.Second) })
		s.ask(5500*time.Millisecond, "meanwhile", time.Minute, &logv1.Acquire{LeaseId: s.NewID(), Track: true})
		s.At(nil, 7*time.Second, func() {
			if n := s.Diverged(); n != 1 {
				t.Errorf("%d nodes are in another state, want the one that died", n)
			}
			s.Heal(0)
		})
		// The entry that was on its way took the one token of the burst; the repetition of
		// its lease id takes none.
		s.wants(t, "flying repeated at 6s", "gathered granted at 6s", "meanwhile granted at 7s")
		if n := s.Diverged(); n != 0 {
			t.Errorf("%d nodes are in another state", n)
		}
	})
}
