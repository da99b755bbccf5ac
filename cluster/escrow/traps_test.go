package escrow

import (
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// table is one wallet in virtual time, and what it wants proposed.
type table struct {
	*Wallet
	t    *testing.T
	now  time.Duration
	asks []*logv1.AskEscrow
	back []*Return
}

func newTable(t *testing.T) *table {
	t.Helper()
	s := &table{t: t, now: time.Minute}
	s.Wallet = New(Config{
		Node: "a.1", Boot: 7, Failover: testFailover, Elapsed: func() time.Duration { return s.now },
	})
	s.Configure(1, testTerms(1))
	return s
}

// step takes a step after d.
func (s *table) step(d time.Duration) {
	s.now += d
	work, _ := s.Step()
	s.asks, s.back = work.Asks, work.Returns
}

// answered applies an ask with an outcome.
func (s *table) applied(op *logv1.AskEscrow, r *logv1.EscrowResult) {
	s.Applied([]*logv1.Operation{{Kind: &logv1.Operation_AskEscrow{AskEscrow: op}}},
		[]*logv1.Result{{Kind: &logv1.Result_Escrow{Escrow: r}}})
}

func given(amount int64) *logv1.EscrowResult {
	return &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_GRANTED, Amount: amount, Life: int64(testLife)}
}

// stock has the pot of limit g, its first dimension and class, hold tokens.
func (s *table) stock(amount int64) {
	s.t.Helper()
	s.step(0)
	for _, op := range s.asks {
		if op.GetDimension() == "requests" && op.GetClass() == "live" {
			s.applied(op, given(amount))
			continue
		}
		s.applied(op, &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_NONE})
	}
}

func (s *table) asksFor(amount int64) *logv1.Acquire {
	return &logv1.Acquire{Charges: []*logv1.Charge{{Limit: "g", Dimension: "requests", Amount: amount}}}
}

func (s *table) grants(amount int64) bool { return s.Take(s.asksFor(amount)).GetAcquire().GetGranted() }

// tracked is a tracked acquire.
func (s *table) tracked(amount int64) *logv1.Acquire {
	op := s.asksFor(amount)
	op.Track, op.LeaseId = true, []byte("0123456789abcdef")
	return op
}

func (s *table) appliedLease(op *logv1.Operation, result *logv1.AcquireResult) {
	s.Applied([]*logv1.Operation{op}, []*logv1.Result{{Kind: &logv1.Result_Acquire{Acquire: result}}})
}

// trace runs each of some traces at a wallet of its own.
func trace(t *testing.T, traces map[string]func(*table)) {
	t.Helper()
	t.Parallel()
	for name, run := range traces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(newTable(t))
		})
	}
}

// TestTrapsOfWhatComes: each trace that broke an earlier design, of what asks bring.
func TestTrapsOfWhatComes(t *testing.T) {
	trace(t, map[string]func(*table){
		// A process has an id of its own, and no sequence twice.
		"T7": func(s *table) {
			s.step(0)
			seen := map[uint64]bool{}
			for _, op := range s.asks {
				if id := op.GetId(); id.GetBoot() != 7 || id.GetNode() != "a.1" || seen[id.GetSequence()] {
					s.t.Errorf("asks under %v", id)
				}
				seen[op.GetId().GetSequence()] = true
			}
		},
		// Asked at 0, committed, the answer lost, asked again: life counts from 0.
		"T8": func(s *table) {
			s.step(0)
			first := s.asks[0]
			s.Answered(first, nil, outcome.ErrUnknown)
			s.step(2 * time.Second)
			if len(s.asks) != 1 || s.asks[0].GetId().GetSequence() != first.GetId().GetSequence() {
				s.t.Fatalf("asked again with %v", s.asks)
			}
			s.applied(first, given(100))
			class := first.GetClass()
			take := func() bool {
				op := s.asksFor(1)
				op.Class, op.Charges[0].Dimension = class, first.GetDimension()
				return s.Take(op) != nil
			}
			if s.now += 990 * time.Millisecond; !take() {
				s.t.Error("it has ended too early")
			}
			if s.now += 10 * time.Millisecond; take() {
				s.t.Error("it lives for longer than from the first sending")
			}
		},
		// A change of the limit ends what is held; it goes back.
		"T9": func(s *table) {
			s.stock(100)
			s.Configure(2, testTerms(2))
			if s.grants(1) {
				s.t.Error("granted from what is void")
			}
			s.step(0)
			if len(s.back) != 1 || s.back[0].Operation.GetReturnEscrow().GetReturns()[0].GetUnspent() != 100 {
				s.t.Errorf("sent back: %v", s.back)
			}
		},
		// What the answer says is not there before the entry was applied here, nor after
		// that which ends it.
		"T10": func(s *table) {
			s.step(0)
			asked := s.asks
			for _, op := range asked {
				s.Answered(op, &logv1.Result{Kind: &logv1.Result_Escrow{Escrow: given(100)}}, nil)
			}
			if s.grants(1) {
				s.t.Error("granted from an answer")
			}
			for _, op := range asked {
				s.applied(op, given(100))
			}
			s.Void("g", "")
			if s.grants(1) {
				s.t.Error("granted from what a pause has ended")
			}
		},
		// What is left goes back once, while it lives.
		"T11": func(s *table) {
			s.stock(100)
			s.grants(30)
			s.step(testLife / 2)
			if len(s.back) != 1 || s.back[0].Operation.GetReturnEscrow().GetReturns()[0].GetUnspent() != 70 {
				s.t.Fatalf("sent back: %v", s.back)
			}
			s.Returned(s.back[0], nil)
			s.step(testLife / 4)
			if len(s.back) != 0 || s.grants(1) {
				s.t.Error("it went back and is still there")
			}
		},
	})
}

// TestTrapsOfWhatGoes: those of what is spent, set aside and given back.
func TestTrapsOfWhatGoes(t *testing.T) {
	trace(t, map[string]func(*table){
		// Denied demand asks for nothing.
		"T16": func(s *table) {
			for range 100 {
				s.Take(&logv1.Acquire{Charges: []*logv1.Charge{{Limit: "k", Key: "x", Dimension: "requests", Amount: 1}}})
			}
			s.stock(0)
			s.step(time.Second)
			if len(s.asks) != 0 {
				s.t.Errorf("asked for %v", s.asks)
			}
		},
		// What is on its way to pay for a lease is not spent.
		"T41": func(s *table) {
			s.stock(10)
			r := s.Reserve(s.tracked(6))
			if s.grants(5) || !s.grants(4) {
				s.t.Error("what is reserved was spent, or more than that")
			}
			s.appliedLease(r.Operation, &logv1.AcquireResult{Granted: true, Paid: []uint32{0}})
			if s.grants(1) {
				s.t.Error("what has paid is there again")
			}
		},
		// A return carries nothing that is reserved, and is not taken back after a doubt.
		"T42": func(s *table) {
			s.stock(10)
			r := s.Reserve(s.tracked(6))
			back := s.Vacate(s.asksFor(20))
			if got := back.Operation.GetReturnEscrow().GetReturns()[0].GetUnspent(); got != 4 {
				s.t.Errorf("%d go back, want what is not reserved", got)
			}
			s.Returned(back, outcome.ErrUnknown)
			s.Free(r, false)
			if s.grants(1) {
				s.t.Error("spent after it may have gone back")
			}
		},
		// A snapshot that has skipped the end of what is held ends it.
		"T43": func(s *table) {
			s.stock(10)
			s.Restored(nil)
			if s.grants(1) {
				s.t.Error("granted from what has gone")
			}
		},
		// Another class can't spend it.
		"T45": func(s *table) {
			s.stock(10)
			op := s.asksFor(1)
			if op.Class = "batch"; s.Take(op) != nil {
				s.t.Error("batch was granted from what live has")
			}
			if op.Class = "live"; s.Take(op) == nil {
				s.t.Error("live was not")
			}
		},
	})
}

// TestRestoredAsks: an ask whose entry a snapshot has skipped brings what the snapshot
// knows; one that it does not know waits.
func TestRestoredAsks(t *testing.T) {
	t.Parallel()
	t.Run("T43", func(t *testing.T) {
		t.Parallel()
		s := newTable(t)
		s.step(0)
		for _, op := range s.asks {
			if op.GetDimension() == "requests" && op.GetClass() == "live" {
				s.now += time.Second
				s.Restored([]Record{
					{Sequence: op.GetId().GetSequence(), Amount: 10, Left: 2500 * time.Millisecond},
					{Sequence: 999, Amount: 10, Left: time.Second},
				})
			}
		}
		if !s.grants(10) || s.grants(1) {
			t.Error("not what the snapshot has")
		}
		if s.now += 1500 * time.Millisecond; s.grants(1) {
			t.Error("it lives for longer than since it was asked for")
		}
	})
}

// TestReservationsEnd: what was set aside comes back where the lease was not paid with
// it, however that is heard, and once.
func TestReservationsEnd(t *testing.T) {
	t.Parallel()
	t.Run("T41", func(t *testing.T) {
		t.Parallel()
		s := newTable(t)
		s.stock(10)
		denied := &logv1.AcquireResult{Denials: []*logv1.Denial{{Limit: "x", RetryAfter: 1}}}
		first := s.Reserve(s.tracked(5))
		s.Free(first, true)
		// The same lease is asked for again before the node has applied the denial.
		second := s.Reserve(s.tracked(5))
		s.appliedLease(first.Operation, denied)
		if s.grants(6) {
			t.Fatal("what is reserved was spent")
		}
		s.appliedLease(second.Operation, &logv1.AcquireResult{Granted: true, Paid: []uint32{0}})
		if s.grants(6) || !s.grants(5) {
			t.Error("not what is left")
		}
		if s.Reserve(s.tracked(1)) != nil {
			t.Error("reserved where nothing is")
		}
	})
}
