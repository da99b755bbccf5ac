package grant_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/grant"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// site is an office over a real state machine, in virtual time: what it proposes is
// gathered, and applied when the test says so.
type site struct {
	*grant.Office
	t        *testing.T
	now      time.Duration
	machine  *fsm.Machine
	proposed []proposal
	wanted   map[string]bool
	answers  []*logv1.Result
}

type proposal struct {
	op   *logv1.Operation
	done func(*logv1.Result, error)
}

func open(t *testing.T, limits ...*logv1.Limit) *site {
	t.Helper()
	t.Parallel()
	s := &site{t: t, now: time.Second, machine: fsm.New(), wanted: make(map[string]bool)}
	s.Office = grant.New(grant.Config{
		Node: "a.00000000", Elapsed: func() time.Duration { return s.now }, Failover: 1500 * time.Millisecond,
		Now:      func() bucket.Instant { return bucket.Instant(s.now) },
		View:     func(read func(*fsm.Machine)) { read(s.machine) },
		Revision: func() uint64 { return s.machine.Revision() },
		Propose: func(op *logv1.Operation, _ time.Duration, done func(*logv1.Result, error)) {
			s.proposed = append(s.proposed, proposal{op, done})
		},
		Wanted: func(_, key string) bool { return s.wanted[key] },
		Answer: func(_ *door.Item, r *logv1.Result) { s.answers = append(s.answers, r) },
	})
	s.apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{Limits: limits}}})
	return s
}

// limit is one of ten a second with a burst of a thousand.
func limit() *logv1.Limit {
	return &logv1.Limit{
		Name: "l", Keyed: true, Target: 10_000, Lease: int64(time.Second), MaxKeys: 1000, Escrow: int64(3 * time.Second),
		Dimensions: []*logv1.Dimension{{
			Name: "requests", Amount: 1000, Interval: int64(time.Second), Burst: 1000, MaxDebt: 10, MaxOpen: 1000,
		}},
	}
}

// apply applies one entry and returns its results.
func (s *site) apply(ops ...*logv1.Operation) []*logv1.Result {
	s.t.Helper()
	results, effects := s.machine.Apply(s.machine.Index()+1, &logv1.Entry{Stamp: int64(s.now), Operations: ops})
	for _, r := range results {
		if refusal := r.GetRefusal(); refusal != nil {
			s.t.Fatal(refusal)
		}
	}
	s.Applied(ops, results, effects)
	return results
}

// commit applies what was proposed, in one entry.
func (s *site) commit(more ...*logv1.Operation) []*logv1.Result {
	s.t.Helper()
	gathered := s.proposed
	s.proposed = nil
	var ops []*logv1.Operation
	for _, p := range gathered {
		ops = append(ops, p.op)
	}
	results := s.apply(append(ops, more...)...)
	for i, p := range gathered {
		p.done(results[i], nil)
	}
	return results[len(gathered):]
}

// step proposes what the wallet wants.
func (s *site) step() {
	work, _ := s.Wallet.Step()
	for _, r := range work.Returns {
		s.Wallet.GiveBack(r, func(op *logv1.Operation, _ time.Duration, done func(*logv1.Result, error)) {
			s.proposed = append(s.proposed, proposal{op, done})
		})
	}
	for _, op := range work.Asks {
		s.proposed = append(s.proposed, proposal{
			&logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: op}},
			func(r *logv1.Result, err error) { s.Wallet.Answered(op, r, err) },
		})
	}
}

func acquire(key string, amount int64) *logv1.Operation {
	return &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: &logv1.Acquire{
		Charges: []*logv1.Charge{{Limit: "l", Key: key, Dimension: "requests", Amount: amount}},
	}}}
}

// ask is what a caller does: from memory, or by an entry.
func (s *site) ask(op *logv1.Operation) *logv1.AcquireResult {
	s.t.Helper()
	var hold grant.Hold
	answer, propose := s.Admit(op, false, &hold)
	if answer == nil {
		answer = s.commit(propose)[0]
	}
	s.Finished(op.GetAcquire(), hold, answer.GetAcquire(), nil)
	return answer.GetAcquire()
}

// stock has the node hold something of a key.
func (s *site) stock(key string) {
	s.t.Helper()
	s.ask(acquire(key, 10))
	s.ask(acquire(key, 10))
	s.step()
	s.commit()
	if !s.ask(acquire(key, 1)).GetEscrow() {
		s.t.Fatal("nothing is held")
	}
}

func level(s *site, key string) int64 {
	in, err := s.machine.Inspect(s.machine.Now(), "l", key)
	if err != nil {
		s.t.Fatal(err)
	}
	return in.Buckets[0].Level
}

// TestWhatIsHeldGoesBackFirst: an acquire that goes to the log finds there what its node
// held, in the same entry.
func TestWhatIsHeldGoesBackFirst(t *testing.T) {
	t.Run("T16_T44", func(t *testing.T) {
		s := open(t, limit())
		s.stock("k")
		// Somebody else takes all but ten.
		s.apply(acquire("k", level(s, "k")-10))
		// What is left in the bucket does not do, with what is held it does.
		whole := level(s, "k")
		for _, held := range s.Wallet.Held() {
			whole += held
		}
		if r := s.ask(acquire("k", whole)); !r.GetGranted() || r.GetEscrow() {
			t.Errorf("%d tokens are there in all, and %v", whole, r)
		}
	})
}

// TestPromisedBuckets: the leader answers asks for what somebody waits for, or was told
// to come back to, without an entry; the others of the entry stay in their order.
func TestPromisedBuckets(t *testing.T) {
	item := func(key string) *door.Item {
		it := &door.Item{Operation: &logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: &logv1.AskEscrow{
			Limit: "l", Key: key, Dimension: "requests", Amount: 1,
		}}}}
		it.Size, _ = batch.Size(it.Operation)
		return it
	}
	t.Run("T27_T46", func(t *testing.T) {
		s := open(t, limit())
		s.wanted["waits"] = true
		s.ask(acquire("denied", 1000))
		denied := s.ask(acquire("denied", 1000))
		if denied.GetGranted() {
			t.Fatal("granted twice")
		}
		b := &batch.Batch[*door.Item]{}
		for _, key := range []string{"free", "waits", "denied", "other"} {
			it := item(key)
			b.Add(it.Operation, it.Size, it)
		}
		var left []string
		for _, op := range s.Without(b).Operations() {
			left = append(left, op.GetAskEscrow().GetKey())
		}
		if !slices.Equal(left, []string{"free", "other"}) || len(s.answers) != 2 {
			t.Fatalf("%v are proposed, and %d answered", left, len(s.answers))
		}
		told := denied.GetDenials()[0].GetRetryAfter()
		if r := s.answers[1].GetEscrow(); r.GetOutcome() != logv1.EscrowResult_OUTCOME_CONTENDED || r.GetWait() < told {
			t.Errorf("%v, the other was told %d", r, told)
		}
		s.now += time.Duration(told) + time.Second
		again := &batch.Batch[*door.Item]{}
		it := item("denied")
		again.Add(it.Operation, it.Size, it)
		if s.Without(again).Len() != 1 {
			t.Error("it is promised for ever")
		}
	})
}

// TestSnapshots: what is held after one is what it has of this process.
func TestSnapshots(t *testing.T) {
	t.Run("T43", func(t *testing.T) {
		s := open(t, limit())
		s.stock("k")
		restore := func(m *fsm.Machine) {
			var b bytes.Buffer
			handle := m.Snapshot()
			defer handle.Release()
			if _, err := handle.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			restored, err := fsm.Restore(&b)
			if err != nil {
				t.Fatal(err)
			}
			s.machine = restored
			s.Restored(restored)
		}
		restore(s.machine)
		if !s.ask(acquire("k", 1)).GetEscrow() {
			t.Error("what is held has gone with a snapshot that has it")
		}
		// Meanwhile the limit has changed; the node sees only what came of it.
		other := fsm.New()
		changed := limit()
		changed.Dimensions[0].Burst = 2000
		other.Apply(s.machine.Index()+1, &logv1.Entry{Stamp: int64(s.now), Operations: []*logv1.Operation{
			{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{Limits: []*logv1.Limit{changed}}}},
		}})
		restore(other)
		if s.ask(acquire("k", 1)).GetEscrow() {
			t.Error("granted from what the snapshot does not have")
		}
	})
}

// TestOverrides: a key with other numbers may have escrow where the others have none,
// and the other way round.
func TestOverrides(t *testing.T) {
	small := limit()
	small.Dimensions[0].Burst = 50
	large := limit().Dimensions
	small.Overrides = []*logv1.Override{{Value: "big-", Prefix: true, Dimensions: large}}
	s := open(t, small)
	for key, want := range map[string]bool{"big-one": true, "little": false} {
		for range 2 {
			s.ask(acquire(key, 1))
		}
		s.step()
		s.commit()
		if got := s.ask(acquire(key, 1)).GetEscrow(); got != want {
			t.Errorf("%s from escrow: %v", key, got)
		}
	}
}

// TestLeasesKnown: an id that is on record is answered by the record, whatever is held.
func TestLeasesKnown(t *testing.T) {
	t.Run("G4", func(t *testing.T) {
		s := open(t, limit())
		s.stock("k")
		id := []byte("0123456789abcdef")
		tracked, plain := acquire("k", 1), acquire("k", 1)
		tracked.GetAcquire().Track, tracked.GetAcquire().LeaseId = true, id
		if r := s.ask(tracked); !slices.Equal(r.GetPaid(), []uint32{0}) {
			t.Errorf("paid by the bucket: %v", r)
		}
		var hold grant.Hold
		plain.GetAcquire().LeaseId = []byte("fedcba9876543210")
		if answer, _ := s.Admit(plain, false, &hold); !answer.GetAcquire().GetEscrow() {
			t.Errorf("another id: %v", answer)
		}
		plain.GetAcquire().LeaseId = id
		if answer, _ := s.Admit(plain, false, &hold); answer != nil {
			t.Errorf("granted a second time under one id: %v", answer)
		}
	})
}

// TestSlackHasBothLives: what a node holds is spent as late as its life allows, and what
// is granted of it as late as a lease allows: the slack that is shown has both.
func TestSlackHasBothLives(t *testing.T) {
	t.Run("T15_G2", func(t *testing.T) {
		one := limit()
		one.Dimensions[0].MaxOpen = 0
		s := open(t, one)
		inspect := func() fsm.BucketView {
			in, err := s.machine.Inspect(s.machine.Now(), "l", "k")
			if err != nil {
				t.Fatal(err)
			}
			return in.Buckets[0]
		}
		if slack := inspect().Slack; slack != 4*time.Second {
			t.Fatalf("a slack of %v, want three seconds of escrow and one of a lease", slack)
		}
		// Several nodes take what they may, and the bucket is full again when they spend
		// it: all of it in one instant.
		ask := func(sequence uint64) *logv1.Operation {
			return &logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: &logv1.AskEscrow{
				Id: &logv1.EscrowID{Node: "b.00000000", Boot: 1, Sequence: sequence}, Limit: "l", Key: "k",
				Dimension: "requests", Amount: 1000,
			}}}
		}
		held := int64(0)
		for sequence := range uint64(8) {
			held += s.apply(ask(sequence + 1))[0].GetEscrow().GetAmount()
			s.now += 300 * time.Millisecond
		}
		s.now += 550 * time.Millisecond
		s.apply()
		instant := held + inspect().Level
		if most := 1000 + inspect().SlackTokens; instant > most || instant <= 2000 {
			t.Errorf("%d can be spent at once, and %d may", instant, most)
		}
	})
}
