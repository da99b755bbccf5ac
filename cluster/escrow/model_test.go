package escrow

import (
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// apply has a node apply the next entries.
func (w *world) apply(n *node, count int) {
	for ; count > 0 && n.applied < len(w.log); count-- {
		e := w.log[n.applied]
		n.applied++
		if e.op != nil {
			n.wallet.Applied([]*logv1.Operation{e.op}, []*logv1.Result{e.result})
		} else {
			n.wallet.Applied(nil, nil)
		}
		if e.void != "" {
			n.wallet.Void(e.void[:1], e.void[2:])
		}
		if e.version > n.version {
			n.version = e.version
			n.wallet.Configure(uint64(n.version), testTerms(n.version))
		}
	}
}

// snapshot has a node skip everything up to now.
func (w *world) snapshot(n *node) {
	n.applied = len(w.log)
	var records []Record
	for id, r := range w.records {
		if id.node == n.name && id.boot == n.boot && !r.over && w.now < r.until {
			records = append(records, Record{
				Sequence: id.sequence, Amount: r.amount, Void: r.void || r.version != w.version, Left: r.until - w.now,
			})
		}
	}
	n.wallet.Restored(records)
	if version := w.versionAt(n.applied); version != n.version {
		n.version = version
		n.wallet.Configure(uint64(version), testTerms(version))
	}
}

// propose sends an operation on its way.
func (w *world) propose(op *logv1.Operation, answer func(*logv1.Result, error)) {
	f := &flying{at: w.now + time.Duration(w.random.IntN(200))*time.Millisecond, op: op, answer: answer}
	switch f.fate = w.random.IntN(10); f.fate {
	case 0:
		// It certainly does not arrive.
		answer(nil, outcome.ErrNoLeader)
		return
	case 1:
		// Nobody hears what becomes of it, and it comes very late, or never.
		answer(nil, outcome.ErrUnknown)
		f.answer = func(*logv1.Result, error) {}
		if f.at += time.Duration(w.random.IntN(5000)) * time.Millisecond; w.random.IntN(2) == 0 {
			return
		}
	}
	w.flights = append(w.flights, f)
}

// land lets arrive what is due, in any order.
func (w *world) land() {
	w.random.Shuffle(len(w.flights), func(i, j int) { w.flights[i], w.flights[j] = w.flights[j], w.flights[i] })
	left := w.flights[:0:0]
	for _, f := range w.flights {
		if f.at > w.now {
			left = append(left, f)
			continue
		}
		w.commit(logged{op: f.op})
		result := w.log[len(w.log)-1].result
		if w.random.IntN(10) == 0 {
			f.answer(nil, outcome.ErrUnknown)
		} else {
			f.answer(result, nil)
		}
	}
	w.flights = left
}

func (w *world) step(n *node) {
	work, _ := n.wallet.Step()
	wallet := n.wallet
	for _, op := range work.Asks {
		w.propose(&logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: op}},
			func(r *logv1.Result, err error) { wallet.Answered(op, r, err) })
	}
	for _, r := range work.Returns {
		w.propose(r.Operation, func(_ *logv1.Result, err error) { wallet.Returned(r, err) })
	}
}

func (w *world) charges() []*logv1.Charge {
	amount := func() int64 { return 1 + w.random.Int64N(6) }
	key := &logv1.Charge{Limit: "k", Key: fmt.Sprint(w.random.IntN(3)), Dimension: "requests", Amount: amount()}
	global := &logv1.Charge{Limit: "g", Dimension: "requests", Amount: amount()}
	tokens := &logv1.Charge{Limit: "g", Dimension: "tokens", Amount: amount()}
	switch w.random.IntN(4) {
	case 0:
		return []*logv1.Charge{key}
	case 1:
		return []*logv1.Charge{global}
	case 2:
		return []*logv1.Charge{tokens, key, global}
	default:
		return []*logv1.Charge{key, global}
	}
}

// use is what callers do at a node.
func (w *world) use(n *node) (took bool) {
	op := &logv1.Acquire{Class: []string{"", "live"}[w.random.IntN(2)], Charges: w.charges()}
	if w.random.IntN(5) == 0 {
		w.lease++
		op.Track, op.LeaseId = true, fmt.Appendf(nil, "%016d", w.lease/2)
		wallet := n.wallet
		if r := wallet.Reserve(op); r != nil {
			w.propose(r.Operation, func(result *logv1.Result, err error) {
				if err == nil && !result.GetAcquire().GetGranted() || !outcome.MayHaveHappened(err) {
					wallet.Free(r, err == nil)
				}
			})
		}
		return false
	}
	before := w.unspent(n)
	result := n.wallet.Take(op).GetAcquire()
	w.spent(n, before, result, op)
	if result.GetGranted() {
		return true
	}
	if w.random.IntN(3) == 0 {
		if r := n.wallet.Vacate(op); r != nil {
			wallet := n.wallet
			w.propose(r.Operation, func(_ *logv1.Result, err error) { wallet.Returned(r, err) })
		}
	}
	n.wallet.Note(op)
	return false
}

func (w *world) unspent(n *node) map[uint64]int64 {
	list := make(map[uint64]int64, len(n.wallet.ledger))
	for sequence, one := range n.wallet.ledger {
		list[sequence] = one.unspent
	}
	return list
}

// spent attributes what was taken to records, and checks each of them.
func (w *world) spent(n *node, before map[uint64]int64, result *logv1.AcquireResult, op *logv1.Acquire) {
	sum := int64(0)
	for sequence, one := range n.wallet.ledger {
		used := before[sequence] - one.unspent
		if used == 0 {
			continue
		}
		sum += used
		id := recordID{n.name, n.boot, sequence}
		r := w.records[id]
		r.spent += used
		w.check(id, r)
		if w.now >= r.until {
			w.t.Fatalf("at %v: %+v is spent after its end", w.now, r)
		}
		if r.version != n.version && r.version != w.version {
			w.t.Fatalf("at %v: %+v of another version than %d", w.now, r, n.version)
		}
		if r.class == "batch" {
			w.t.Fatalf("%+v is spent by live", r)
		}
	}
	want := int64(0)
	if result.GetGranted() {
		for _, c := range op.GetCharges() {
			want += c.GetAmount()
		}
	}
	if sum != want {
		w.t.Fatalf("%d tokens are gone for a grant of %d", sum, want)
	}
}

// TestNothingIsSpentTwice: with lost, late and repeated proposals, voids, snapshots and
// restarts no token is used twice, and much is granted all the same.
func TestNothingIsSpentTwice(t *testing.T) {
	t.Parallel()
	t.Run("T7_T8_T9_T10_T11_T41_T42_T43_T45", func(t *testing.T) {
		t.Parallel()
		taken, records := 0, 0
		for number := range uint64(150) {
			w := newWorld(t, number)
			for range 1500 {
				w.now += time.Duration(1+w.random.IntN(20)) * time.Millisecond
				n := w.nodes[w.random.IntN(len(w.nodes))]
				if w.use(n) {
					taken++
				}
				w.disturb(n)
				w.land()
				w.apply(n, w.random.IntN(20))
				w.step(n)
			}
			records += len(w.records)
		}
		t.Logf("%d grants from %d records", taken, records)
		if taken < 50_000 {
			t.Errorf("only %d grants", taken)
		}
	})
}

// disturb does now and then what makes all of it hard.
func (w *world) disturb(n *node) {
	switch w.random.IntN(300) {
	case 0:
		w.version++
		w.commit(logged{version: w.version})
	case 1, 2:
		w.commit(logged{void: "k/" + fmt.Sprint(w.random.IntN(3))})
	case 3:
		w.commit(logged{void: "g/"})
	case 4, 5:
		w.snapshot(n)
	case 6:
		w.restart(n)
	case 7:
		w.now += 2 * time.Second
	}
}
