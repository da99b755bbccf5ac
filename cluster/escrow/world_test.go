package escrow

import (
	"math/rand/v2"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// world is a log, the state it makes, and three nodes that apply it late, ask, spend,
// return, crash and install snapshots, in virtual time.
type world struct {
	t       *testing.T
	random  *rand.Rand
	now     time.Duration
	log     []logged
	version uint32
	records map[recordID]*record
	highest map[recordID]uint64
	buckets map[bucketName]*level
	// paidLeases are those that were granted, by id.
	paidLeases map[string]bool
	nodes      []*node
	flights    []*flying
	granted    int64
	lease      int
}

type recordID struct {
	node     string
	boot     uint64
	sequence uint64
}

// record is one ask as the state machine would keep it.
type record struct {
	bucket                     bucketName
	class                      string
	amount, paid, spent, given int64
	until                      time.Duration
	version                    uint32
	void, over                 bool
}

type level struct {
	tokens, burst, rate int64
	at                  time.Duration
}

// logged is one entry, with its results; void and version are what it voids.
type logged struct {
	op      *logv1.Operation
	result  *logv1.Result
	void    string
	version uint32
}

// flying is a proposal on its way; answer is told what became of it.
type flying struct {
	at     time.Duration
	op     *logv1.Operation
	answer func(*logv1.Result, error)
	fate   int
}

type node struct {
	name    string
	boot    uint64
	wallet  *Wallet
	applied int
	// dead: a process of before, whose proposals may still arrive.
	version uint32
}

const (
	testLife     = 3 * time.Second
	testFailover = 1500 * time.Millisecond
)

func testTerms(version uint32) []*Terms {
	bursts := []int64{400, 300}
	return []*Terms{
		{
			Limit: "g", Version: version, Life: testLife, Lease: time.Second, Classes: []string{"live", "batch"},
			Dimensions: []Dimension{{"requests", bursts}, {"tokens", bursts}},
		},
		{
			Limit: "k", Version: version, Keyed: true, Life: testLife, Lease: 2 * time.Second,
			Dimensions: []Dimension{{"requests", []int64{400}}},
		},
	}
}

func newWorld(t *testing.T, number uint64) *world {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(number, 1)), version: 1, //nolint:gosec // a test's choice
		records: make(map[recordID]*record), highest: make(map[recordID]uint64),
		buckets: make(map[bucketName]*level), paidLeases: make(map[string]bool),
	}
	for _, name := range []string{"a", "b", "c"} {
		n := &node{name: name}
		w.nodes = append(w.nodes, n)
		w.restart(n)
	}
	return w
}

// restart starts a process anew: it knows the limits of what it has applied.
func (w *world) restart(n *node) {
	n.boot = w.random.Uint64()
	n.wallet = New(Config{
		Node: n.name, Boot: n.boot, Failover: testFailover, Elapsed: func() time.Duration { return w.now },
	})
	n.version = w.versionAt(n.applied)
	n.wallet.Configure(uint64(n.version), testTerms(n.version))
}

func (w *world) versionAt(index int) uint32 {
	version := uint32(1)
	for _, e := range w.log[:index] {
		version = max(version, e.version)
	}
	return version
}

func (w *world) level(name bucketName) *level {
	l := w.buckets[name]
	if l == nil {
		l = &level{tokens: 400, burst: 400, rate: 100, at: w.now}
		w.buckets[name] = l
	}
	passed := (w.now - l.at).Milliseconds() * l.rate / 1000
	l.tokens = min(l.burst, l.tokens+passed)
	l.at += time.Duration(passed*1000/l.rate) * time.Millisecond
	return l
}

// commit applies an operation to the state, as the state machine would.
func (w *world) commit(e logged) {
	switch {
	case e.version != 0:
		w.version = e.version
	case e.void != "":
		for _, r := range w.records {
			r.void = r.void || r.bucket.limit+"/"+r.bucket.key == e.void
		}
	case e.op.GetAskEscrow() != nil:
		e.result = &logv1.Result{Kind: &logv1.Result_Escrow{Escrow: w.ask(e.op.GetAskEscrow())}}
	case e.op.GetReturnEscrow() != nil:
		for _, r := range e.op.GetReturnEscrow().GetReturns() {
			w.giveBack(r)
		}
		e.result = &logv1.Result{Kind: &logv1.Result_Done{Done: &logv1.Done{}}}
	default:
		e.result = &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: w.acquire(e.op.GetAcquire())}}
	}
	w.log = append(w.log, e)
}

func idOf(id *logv1.EscrowID) recordID { return recordID{id.GetNode(), id.GetBoot(), id.GetSequence()} }

func (w *world) live(id *logv1.EscrowID) *record {
	r := w.records[idOf(id)]
	if r == nil || r.over || w.now >= r.until {
		return nil
	}
	return r
}

func (w *world) ask(op *logv1.AskEscrow) *logv1.EscrowResult {
	id := idOf(op.GetId())
	if r := w.live(op.GetId()); r != nil {
		return &logv1.EscrowResult{
			Outcome: logv1.EscrowResult_OUTCOME_GRANTED, Amount: r.amount, Life: int64(r.until - w.now), Repeated: true,
		}
	}
	process := recordID{id.node, id.boot, 0}
	if id.sequence <= w.highest[process] {
		return &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_ENDED}
	}
	w.highest[process] = id.sequence
	name := bucketName{op.GetLimit(), op.GetKey(), op.GetDimension()}
	l := w.level(name)
	amount := min(op.GetAmount(), l.tokens/2)
	if amount < max(1, op.GetAmount()/16) {
		return &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_CONTENDED}
	}
	l.tokens -= amount
	w.granted += amount
	w.records[id] = &record{
		bucket: name, class: op.GetClass(), amount: amount, until: w.now + testLife, version: w.version,
	}
	return &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_GRANTED, Amount: amount, Life: int64(testLife)}
}

func (w *world) giveBack(back *logv1.EscrowReturn) {
	r := w.live(back.GetId())
	if r == nil {
		return
	}
	r.over = true
	r.given = back.GetUnspent()
	w.check(idOf(back.GetId()), r)
	l := w.level(r.bucket)
	l.tokens = min(l.burst, l.tokens+back.GetUnspent())
}

func (w *world) acquire(op *logv1.Acquire) *logv1.AcquireResult {
	result := &logv1.AcquireResult{Granted: true, Tracked: true}
	if w.paidLeases[string(op.GetLeaseId())] {
		result.Repeated = true
		return result
	}
	if w.random.IntN(4) == 0 {
		return &logv1.AcquireResult{Denials: []*logv1.Denial{{Limit: "x", RetryAfter: 1}}}
	}
	w.paidLeases[string(op.GetLeaseId())] = true
	for i, c := range op.GetCharges() {
		r := w.live(c.GetEscrow())
		if r == nil || r.void || r.version != w.version || r.amount-r.paid < c.GetAmount() {
			continue
		}
		r.paid += c.GetAmount()
		result.Paid = append(result.Paid, uint32(i))
		w.check(idOf(c.GetEscrow()), r)
	}
	return result
}

// check is the invariant: no token of a record is used twice.
func (w *world) check(id recordID, r *record) {
	if r.spent+r.paid+r.given > r.amount {
		w.t.Fatalf("at %v: %+v of %+v: more is used than there was", w.now, r, id)
	}
}
