package escrow_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/escrow"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// book is what the model knows of one id that was granted: what a machine has to do with
// it, worked out once more.
type book struct {
	class        string
	amount, left int64
	until        time.Duration
	void, gone   bool
	// spent is what its node has spent of it from memory.
	spent int64
}

// name is an id, for the books.
type name struct {
	node           string
	boot, sequence uint64
}

func nameOf(id *logv1.EscrowID) name { return name{id.GetNode(), id.GetBoot(), id.GetSequence()} }

// portion is what a process has of one id.
type portion struct {
	unspent, reserved int64
	until             time.Duration
}

// process is one life of a node.
type process struct {
	node     string
	boot     uint64
	sequence uint64
	// pending are asks by when they were first sent.
	pending  map[uint64]time.Duration
	portions map[uint64]*portion
	// reserved is what acquires under way have set aside, by lease.
	reserved map[string]*logv1.Charge
	// seen is how much of the log it has applied.
	seen int
}

// logged is an entry with what came of it.
type logged struct {
	operations []*logv1.Operation
	results    []*logv1.Result
	voided     bool
}

// model is nodes that ask for one bucket of two classes over a network that loses,
// repeats and reorders, beside callers who go to the leader.
type model struct {
	*testing.T
	random *rand.Rand
	m      *fsm.Machine
	now    time.Duration
	limit  *logv1.Limit
	// level is that of the bucket, taken and given say what left it and came back.
	level        *big.Rat
	at           time.Duration
	taken, given int64
	spent        int64
	books        map[name]*book
	nodes        []*process
	flying       []*logv1.Operation
	log          []logged
	leases       int
	// most is the largest bound on what may be out while something of before is.
	most      int64
	mostUntil time.Duration
}

func newModel(t *testing.T, seed uint64) *model {
	t.Helper()
	w := &model{
		T: t, random: rand.New(rand.NewPCG(seed, 1)), m: fsm.New(), books: make(map[name]*book),
		level: big.NewRat(1000, 1),
	}
	w.limit = w.configured(100, 1000, 3*time.Second)
	w.apply(fsmtest.Apply(w.limit))
	for i := range 3 {
		w.nodes = append(w.nodes, w.started(fmt.Sprint("n", i)))
	}
	return w
}

func (w *model) configured(rate, burst int64, life time.Duration) *logv1.Limit {
	d := &logv1.Dimension{Name: "requests", Amount: rate, Interval: int64(time.Second), Burst: burst}
	limit := fsmtest.Limit("api", d)
	limit.Escrow, limit.Lease = int64(life), int64(time.Second)+w.random.Int64N(1000)
	limit.Classes = []*logv1.Class{{Name: "live", Share: 5_000, Burst: 3_000}, {Name: "batch", Share: 1_000, Burst: 1_000}}
	return limit
}

func (w *model) started(node string) *process {
	return &process{
		node: node, boot: w.random.Uint64(), pending: make(map[uint64]time.Duration),
		portions: make(map[uint64]*portion), reserved: make(map[string]*logv1.Charge), seen: len(w.log),
	}
}

func (p *process) id(sequence uint64) *logv1.EscrowID {
	return fsmtest.EscrowID(p.node, p.boot, sequence)
}

func (w *model) chance(n int) bool { return w.random.IntN(n) == 0 }

func (w *model) class() string { return []string{"live", "batch"}[w.random.IntN(2)] }

func charge(n int64) *logv1.Charge { return fsmtest.Charge("api", "", "requests", n) }

// send puts an operation on its way: never, once or twice, and who knows when.
func (w *model) send(op *logv1.Operation) {
	for range 1 + w.random.IntN(8)/3 - w.random.IntN(8)/7 {
		w.flying = append(w.flying, op)
	}
}

// act lets a node do something.
func (w *model) act(p *process) {
	switch w.random.IntN(12) {
	case 0, 1:
		p.sequence++
		p.pending[p.sequence] = w.now
		w.send(fsmtest.Ask(p.id(p.sequence), charge(1+w.random.Int64N(400)), w.class()))
	case 2, 3, 4, 5:
		w.spend(p)
	case 6, 7:
		w.back(p)
	case 8, 9:
		w.reserve(p)
	case 10:
		if w.chance(6) {
			*p = *w.started(p.node)
		}
	default:
		w.restore(p)
	}
}

// pick is one of a process's portions that has not ended by its clock.
func (w *model) pick(p *process) (sequence uint64, one *portion) {
	var live []uint64
	for sequence, one := range p.portions {
		if w.now < one.until {
			live = append(live, sequence)
		}
	}
	if len(live) == 0 {
		return 0, nil
	}
	slices.Sort(live)
	sequence = live[w.random.IntN(len(live))]
	return sequence, p.portions[sequence]
}

func (w *model) spend(p *process) {
	w.Helper()
	sequence, one := w.pick(p)
	if one == nil || one.unspent == 0 {
		return
	}
	n := 1 + w.random.Int64N(one.unspent)
	one.unspent -= n
	w.spent += n
	b := w.books[nameOf(p.id(sequence))]
	if b == nil {
		w.Fatalf("%s spends of %d, which nobody gave it", p.node, sequence)
	}
	// What was paid is gone, and so is what came back.
	if b.spent += n; b.spent > b.left {
		w.Fatalf("%s.%d: %d of %d are spent", p.node, sequence, b.spent, b.left)
	}
	if w.spent > w.taken-w.given {
		w.Fatalf("%d spent of %d taken, %d came back", w.spent, w.taken, w.given)
	}
}

// back returns what is unspent of a portion.
func (w *model) back(p *process) {
	sequence, one := w.pick(p)
	if one == nil {
		return
	}
	unspent := one.unspent
	one.unspent = 0
	if b := w.books[nameOf(p.id(sequence))]; b.spent == 0 && one.reserved == 0 {
		// More than there is: what leases were paid with does not come back here.
		unspent += w.random.Int64N(2 * b.amount)
	}
	w.send(fsmtest.Return(p.id(sequence), unspent))
}

// reserve sends a tracked acquire with what is to pay for it.
func (w *model) reserve(p *process) {
	sequence, one := w.pick(p)
	if one == nil || one.unspent == 0 {
		return
	}
	c := charge(1 + w.random.Int64N(one.unspent))
	c.Escrow = p.id(sequence)
	w.leases++
	id := fmt.Sprint("lease", w.leases)
	b := w.books[nameOf(c.GetEscrow())]
	if w.chance(4) {
		// It has set nothing aside, and there is not so much: the bucket has to pay.
		c.Amount = b.left + 1
	} else {
		one.unspent -= c.GetAmount()
		one.reserved += c.GetAmount()
		p.reserved[string(fsmtest.LeaseID(id))] = c
	}
	class := b.class
	if w.chance(8) {
		class = w.class()
	}
	w.send(fsmtest.Operation(&logv1.Acquire{
		LeaseId: fsmtest.LeaseID(id), Track: true, Class: class, Charges: []*logv1.Charge{c},
	}))
}

// catchUp applies some more of the log at a node.
func (w *model) catchUp(p *process) {
	for ; p.seen < len(w.log) && !w.chance(4); p.seen++ {
		entry := w.log[p.seen]
		if entry.voided {
			for _, one := range p.portions {
				one.unspent = 0
			}
		}
		for i, op := range entry.operations {
			w.applied(p, op, entry.results[i])
		}
	}
}

func (w *model) applied(p *process, op *logv1.Operation, result *logv1.Result) {
	if a := op.GetAcquire(); a != nil {
		c := p.reserved[string(a.GetLeaseId())]
		if c == nil {
			return
		}
		delete(p.reserved, string(a.GetLeaseId()))
		one := p.portions[c.GetEscrow().GetSequence()]
		one.reserved -= c.GetAmount()
		// What is void or was returned stays so: it is not free again.
		if b := w.books[nameOf(c.GetEscrow())]; len(result.GetAcquire().GetPaid()) == 0 && !b.void && !b.gone {
			one.unspent += c.GetAmount()
		}
		return
	}
	id := op.GetAskEscrow().GetId()
	if id.GetNode() != p.node || id.GetBoot() != p.boot {
		return
	}
	sent, pending := p.pending[id.GetSequence()]
	if r := result.GetEscrow(); pending && r.GetOutcome() == logv1.EscrowResult_OUTCOME_GRANTED {
		p.portions[id.GetSequence()] = &portion{
			unspent: r.GetAmount(), until: sent + time.Duration(r.GetLife()) - time.Duration(r.GetLife())/1000,
		}
	}
	delete(p.pending, id.GetSequence())
}

// restore makes a node install a snapshot of now: what it has is what is in there, less
// what it has spent and set aside.
func (w *model) restore(p *process) {
	if !w.chance(3) {
		return
	}
	w.m = fsmtest.Restored(w.T, w.m)
	p.seen = len(w.log)
	held := make(map[uint64]escrow.Holding)
	for h := range w.m.Escrow().Held(p.node, p.boot) {
		held[h.ID.Sequence] = h
		if sent, pending := p.pending[h.ID.Sequence]; pending && !h.Void {
			p.portions[h.ID.Sequence] = &portion{unspent: h.Left, until: sent + h.Life*999/1000}
			delete(p.pending, h.ID.Sequence)
		}
	}
	for sequence, one := range p.portions {
		if h, there := held[sequence]; !there || h.Void {
			one.unspent = 0
		}
	}
	// Whether leases of entries that it has not seen were paid is not known: what is set
	// aside stays so.
	clear(p.reserved)
}

// commit makes an entry of what has arrived.
func (w *model) commit() {
	w.random.Shuffle(len(w.flying), func(i, j int) { w.flying[i], w.flying[j] = w.flying[j], w.flying[i] })
	n := w.random.IntN(len(w.flying) + 1)
	operations := slices.Clone(w.flying[:n])
	w.flying = slices.Delete(w.flying, 0, n)
	for range w.random.IntN(3) {
		op := &logv1.Acquire{Class: w.class(), Charges: []*logv1.Charge{charge(1 + w.random.Int64N(500))}}
		operations = slices.Insert(operations, w.random.IntN(len(operations)+1), fsmtest.Operation(op))
	}
	if w.chance(25) {
		d := w.limit.GetDimensions()[0]
		rate, burst, life := d.GetAmount(), d.GetBurst(), time.Duration(1+w.random.IntN(4))
		if w.chance(2) {
			rate, burst = 50+w.random.Int64N(100), 400+w.random.Int64N(800)
		}
		operations = append(operations, fsmtest.Apply(w.configured(rate, burst, life*time.Second)))
	}
	w.apply(operations...)
	w.promised(operations)
}

// apply applies operations as one entry, and compares with what was worked out here.
func (w *model) apply(operations ...*logv1.Operation) {
	w.Helper()
	w.refill()
	results, _ := w.m.Apply(w.m.Index()+1, &logv1.Entry{Stamp: int64(w.now), Operations: operations})
	entry := logged{operations: operations, results: results}
	for i, op := range operations {
		w.judge(op, results[i])
		entry.voided = entry.voided || op.GetApplyLimits() != nil
	}
	w.log = append(w.log, entry)
	in, err := w.m.Glance(bucket.Instant(w.now), "api", "")
	if err != nil {
		w.Fatal(err)
	}
	floor := new(big.Int).Quo(w.level.Num(), w.level.Denom()).Int64()
	if got := in.Buckets[0].Level; got != floor {
		w.Fatalf("level %d at %v, want %d, entry %d", got, w.now, floor, len(w.log))
	}
	if w.m.Hash() != w.m.Recount() {
		w.Fatalf("hash %016x, recount %016x", w.m.Hash(), w.m.Recount())
	}
	w.bounds(in)
}

func (w *model) refill() {
	d := w.limit.GetDimensions()[0]
	in := new(big.Rat).Mul(big.NewRat(d.GetAmount(), d.GetInterval()), big.NewRat(int64(w.now-w.at), 1))
	w.level.Add(w.level, in)
	w.at = w.now
	w.clamp(d.GetBurst())
}

func (w *model) clamp(burst int64) {
	if most := big.NewRat(burst, 1); w.level.Cmp(most) > 0 {
		w.level.Set(most)
	}
}

func (w *model) take(n int64) {
	w.Helper()
	w.level.Sub(w.level, big.NewRat(n, 1))
	w.taken += n
	if w.level.Sign() < 0 {
		w.Fatalf("G1: %v at %v", w.level, w.now)
	}
}
