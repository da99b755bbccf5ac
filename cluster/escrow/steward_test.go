package escrow

import (
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/outcome"
)

func keyed(key string, amount int64) *logv1.Acquire {
	return &logv1.Acquire{Charges: []*logv1.Charge{{Limit: "k", Key: key, Dimension: "requests", Amount: amount}}}
}

// settle answers the asks of the start with no.
func (s *table) settle() {
	s.step(0)
	for _, op := range s.asks {
		s.applied(op, &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_NONE})
	}
	s.step(0)
}

// TestColdKeysAskForNothing: one use of one key among many is no reason to ask, two
// within a life are; and what nobody uses is forgotten.
func TestColdKeysAskForNothing(t *testing.T) {
	t.Parallel()
	s := newTable(t)
	s.settle()
	for i := range 1000 {
		s.Note(keyed(fmt.Sprint(i), 1))
	}
	if s.step(0); len(s.asks) != 0 {
		t.Fatalf("%d keys were asked for", len(s.asks))
	}
	s.now += time.Second
	for i := range 100 {
		s.Note(keyed(fmt.Sprint(i), 1))
	}
	// One or the other may have been forgotten.
	if s.step(0); len(s.asks) < 90 || len(s.asks) > 100 {
		t.Fatalf("asked for %d keys of 100", len(s.asks))
	}
	for _, op := range s.asks {
		if op.GetAmount() < 2 || len(op.GetKey()) > 2 {
			t.Fatalf("asked for %v", op)
		}
		s.applied(op, &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_NONE})
	}
	for range 5 {
		s.step(time.Second)
	}
	if n := s.known.Load(); n != 0 {
		t.Errorf("%d keys are remembered", n)
	}
}

// TestColdKeysLeaveNothing: what is kept of keys that are used once each is bounded, and
// for many of them a second use within a life is still seen.
func TestColdKeysLeaveNothing(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		s := newTable(t)
		s.settle()
		for i := range 20_000 {
			s.Note(keyed(fmt.Sprint(i), 1))
		}
		var one touches
		for i := range uint32(20_000) {
			one.again(i*0x9E3779B1, s.now, testLife)
		}
		s.step(0)
		// There is the limit without keys.
		known := s.known.Load()
		if known > 5 || len(s.alarms) > 20 || len(one.cells) > cellsMax {
			t.Errorf("%d keys, %d alarms and %d cells", known, len(s.alarms), len(one.cells))
		}
		const few = 5_000
		for range 2 {
			for i := range few {
				s.Note(keyed(fmt.Sprint(i), 1))
			}
		}
		if seen := s.known.Load() - known; seen < few*9/10 {
			t.Errorf("%d of %d keys were seen a second time", seen, few)
		}
		s.step(0)
		s.now += testLife + time.Second
		s.Note(keyed("late", 1))
		s.now += testLife
		before := s.known.Load()
		if s.Note(keyed("late", 1)); s.known.Load() != before {
			t.Error("two uses that lie a life apart are taken for two within one")
		}
	})
}

// held is what the pot that grants asks from has.
func (s *table) held() int64 {
	at, _ := s.books.Load().find("", s.asksFor(1).GetCharges()[0])
	return at.shard.keys[""].pots[at.pot].leftLocked(s.now)
}

// TestAmountsFollowWhatIsGranted: as much as is granted in twice the time that there
// may be no leader, in time, and no more than the burst. However long ago the last ask
// was, there is enough for that time and the callers of a node that is lost.
func TestAmountsFollowWhatIsGranted(t *testing.T) {
	t.Parallel()
	s := newTable(t)
	s.stock(60)
	asked, grants, last := 0, 0, int64(0)
	for i := range 1000 {
		s.now += 10 * time.Millisecond
		if s.grants(1) {
			grants++
		}
		if held := s.held(); i > 500 && (held < 220 || held > 400) {
			t.Errorf("%d are held after %d grants, want 225 to 300 and what chance may add", held, i)
		}
		s.step(0)
		for _, op := range s.asks {
			asked++
			last = op.GetAmount()
			s.applied(op, given(last))
		}
	}
	// 100 a second for ten seconds.
	if grants < 990 || asked > 25 || last < 50 || last > 400 {
		t.Errorf("%d grants, %d asks, the last one for %d", grants, asked, last)
	}
}

// TestBackOff: where the bucket is short the node asks more and more rarely, and as
// late as it was told; where nobody leads it tries again soon.
func TestBackOff(t *testing.T) {
	t.Parallel()
	s := newTable(t)
	s.settle()
	contended := &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_CONTENDED}
	var at []time.Duration
	for range 1000 {
		s.now += 10 * time.Millisecond
		s.Applied(nil, nil)
		s.Note(keyed("x", 1))
		s.step(0)
		for _, op := range s.asks {
			at = append(at, s.now)
			s.applied(op, contended)
		}
	}
	if len(at) < 5 || len(at) > 12 {
		t.Errorf("asked at %v", at)
	}
	s.now += 10 * time.Second
	s.Applied(nil, nil)
	s.Note(keyed("y", 1))
	s.Note(keyed("y", 1))
	s.step(0)
	s.Answered(s.asks[0], nil, outcome.ErrNoLeader)
	if s.step(200 * time.Millisecond); len(s.asks) != 0 {
		t.Error("asked again at once")
	}
	if s.step(60 * time.Millisecond); len(s.asks) != 1 {
		t.Error("not asked again")
	}
	s.Answered(s.asks[0], &logv1.Result{Kind: &logv1.Result_Escrow{Escrow: &logv1.EscrowResult{
		Outcome: logv1.EscrowResult_OUTCOME_CONTENDED, Wait: int64(time.Second),
	}}}, nil)
	s.Note(keyed("y", 1))
	if s.step(990 * time.Millisecond); len(s.asks) != 0 {
		t.Error("asked before the time that was named")
	}
	s.Note(keyed("y", 1))
	if s.step(20 * time.Millisecond); len(s.asks) != 1 {
		t.Error("not asked afterwards")
	}
}

// TestStaleNodesDontAsk: one that hears of no changes asks for nothing.
func TestStaleNodesDontAsk(t *testing.T) {
	t.Parallel()
	s := newTable(t)
	s.settle()
	s.now += testLife/2 + time.Millisecond
	s.Note(keyed("x", 1))
	s.Note(keyed("x", 1))
	if s.step(0); len(s.asks) != 0 {
		t.Error("asked without having heard of anything")
	}
	s.Applied(nil, nil)
	if s.step(pauseMin); len(s.asks) != 1 {
		t.Error("not asked when it has")
	}
}

// TestAReturnThatFailedIsHeldAgain: nobody leads, and what is there goes on being
// granted until it ends.
func TestAReturnThatFailedIsHeldAgain(t *testing.T) {
	t.Parallel()
	s := newTable(t)
	s.stock(10)
	back := s.Vacate(s.asksFor(20))
	if s.grants(1) {
		t.Error("granted what is on its way back")
	}
	s.Returned(back, outcome.ErrNoLeader)
	if !s.grants(10) {
		t.Error("it is lost")
	}
	s.Close()
	if s.grants(1) {
		t.Error("a node that is closed grants")
	}
}

// TestHotKeysOfAChangedLimit are asked for at once, those that were used once are not.
func TestHotKeysOfAChangedLimit(t *testing.T) {
	t.Parallel()
	s := newTable(t)
	s.settle()
	s.Note(keyed("x", 3))
	s.Note(keyed("x", 3))
	s.Note(keyed("cold", 3))
	s.Configure(2, testTerms(2))
	s.step(0)
	found := false
	for _, op := range s.asks {
		found = found || op.GetLimit() == "k" && op.GetKey() == "x"
		if op.GetKey() == "cold" {
			t.Error("asked for a key that was used once")
		}
	}
	if !found || s.Outcomes().None == 0 {
		t.Errorf("asked for %v", s.asks)
	}
}

// TestPromises: a bucket that somebody was told to come back to is nobody's until
// then, and there may be any number of them.
func TestPromises(t *testing.T) {
	t.Parallel()
	t.Run("T46", func(t *testing.T) {
		t.Parallel()
		var p Promises
		ask := &logv1.AskEscrow{Limit: "g", Dimension: "requests"}
		deny := func(key string, wait time.Duration) {
			p.Denied(time.Second, &logv1.AcquireResult{Denials: []*logv1.Denial{
				{Limit: "g", Key: key, Dimension: "requests", RetryAfter: int64(wait)},
			}})
		}
		p.Denied(time.Second, &logv1.AcquireResult{Granted: true})
		deny("", time.Second)
		deny("", time.Millisecond)
		for at, want := range map[time.Duration]bool{
			time.Second: true, 2 * time.Second: true, 2100 * time.Millisecond: false,
		} {
			if got := p.Wait(at, ask) > 0; got != want {
				t.Errorf("at %v promised: %v", at, got)
			}
		}
		for i := range promisesMax + 10 {
			deny(fmt.Sprint(i), time.Minute)
		}
		if len(p.until) > promisesMax || p.Wait(3*time.Second, ask) == 0 {
			t.Errorf("%d are kept, and one that is not is not promised", len(p.until))
		}
	})
}
