package escrow

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/ledger"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

const (
	// maxHeld bounds the records that one node has of one bucket for one class.
	maxHeld = 8
	// shortPart says when a bucket is short: less than this part of the class's effective
	// burst is there.
	shortPart = 4
	// givenPart is what part of what is there is given at once, worthPart which part of
	// what was asked for is worth a record.
	givenPart, worthPart = 2, 16
)

// asked is an ask thought through: nothing of the state has changed.
type asked struct {
	lim *state.Limit
	// key is nil for one never seen.
	key  *state.Key
	name string
	// d is the dimension, index its place in the version now.
	d     *lineage.Dimension
	index int
	class int
	// after is the bucket, first as it is now and then without what is given.
	after bucket.Bucket
}

// Ask moves tokens to the node that asks, which spends them from memory. The same id is
// answered once: a repetition while its record lives gets the same answer with the life
// that remains, any other is told that it has ended (T7). An answer of no changes
// nothing. The error is a *refuse.Refused.
func (b *Book) Ask(op *logv1.AskEscrow) (*logv1.Result, error) {
	if err := checkAsk(op); err != nil {
		return nil, err
	}
	id := record.EscrowIDOf(op.GetId())
	if e := b.state.Ledger.Find(id); e != nil {
		return b.again(e, op)
	}
	if id.Sequence <= b.state.Ledger.Highest(id.Node, id.Boot) {
		return outcome(logv1.EscrowResult_OUTCOME_ENDED)
	}
	a, no := b.seek(op)
	if no != logv1.EscrowResult_OUTCOME_UNSPECIFIED {
		return outcome(no)
	}
	if closed, wait := b.closed(&a); closed {
		return contended(wait)
	}
	b.look(&a)
	given, wait := b.weigh(&a, id.Node, op.GetAmount())
	if given == 0 {
		return contended(wait)
	}
	return result(b.give(&a, id, given))
}

// again answers an ask whose record is known.
func (b *Book) again(e *ledger.Escrow, op *logv1.AskEscrow) (*logv1.Result, error) {
	lim, class := b.state.LimitByID(e.LimitID), op.GetClass()
	if lim.Name != op.GetLimit() || e.KeyName != op.GetKey() || class != "" && e.Class != "" && class != e.Class {
		return nil, refuse.Field("id.sequence", "%d: was used for another bucket", e.ID.Sequence)
	}
	if !holds(b.state, e) {
		return outcome(logv1.EscrowResult_OUTCOME_ENDED)
	}
	return result(&logv1.EscrowResult{
		Outcome: logv1.EscrowResult_OUTCOME_GRANTED, Amount: e.Amount, Life: int64(e.Until - b.state.Now), Repeated: true,
	})
}

// seek finds what is asked for, or says why there is none.
func (b *Book) seek(op *logv1.AskEscrow) (asked, logv1.EscrowResult_Outcome) {
	lim := b.state.FindLimit(op.GetLimit())
	if lim == nil || !lim.Live() || check.WrongKey(lim.Limit.GetKeyed(), op.GetKey()) != "" {
		return asked{}, logv1.EscrowResult_OUTCOME_GONE
	}
	if !gives(lim.Limit) {
		return asked{}, logv1.EscrowResult_OUTCOME_NONE
	}
	v := lim.Now().For(op.GetKey())
	a := asked{lim: lim, key: b.state.FindKey(lim.ID, op.GetKey()), name: op.GetKey(), index: v.Find(op.GetDimension())}
	if a.index < 0 || !v.Dimensions[a.index].Live() {
		return asked{}, logv1.EscrowResult_OUTCOME_GONE
	}
	a.d = &v.Dimensions[a.index]
	var known bool
	if a.class, known = a.d.Class(op.GetClass()); !known {
		return asked{}, logv1.EscrowResult_OUTCOME_GONE
	}
	if !largeEnough(a.d.Shape, a.class, members(b.state)) {
		return asked{}, logv1.EscrowResult_OUTCOME_NONE
	}
	return a, logv1.EscrowResult_OUTCOME_UNSPECIFIED
}

// closed says that nothing is given of the key for now whatever lies in its bucket, and
// for how long, 0 where that is not known.
func (b *Book) closed(a *asked) (closed bool, wait int64) {
	of := Bucket{Limit: a.lim.ID, Dimension: a.d.ID, Key: a.name}
	if wait, promised := b.promised[of]; promised {
		return true, wait
	}
	if c := b.state.ControlOf(a.key); c != nil {
		// It reopens slowly, and whoever comes is to see that: by the log alone.
		return true, max(0, int64(c.Pace.Opens-b.state.Now))
	}
	// Whoever brings keys into being is counted where the limit asks for it, and a node
	// does not say for whom it asks.
	fresh := a.key == nil && (b.state.NoRoom(a.lim) != "" ||
		a.lim.Limit.GetKeyed() && a.lim.Limit.GetMaxKeysPerClient() > 0)
	return fresh || int64(b.state.Ledger.Len()) >= b.state.Caps.GetLeases(), 0
}

// weigh takes tokens for the node from a copy of the bucket: half of what the class can
// take, and never so much that more is outstanding than the rate hands out in the life
// of a record (T40). 0 is none, and then when to ask again.
func (b *Book) weigh(a *asked, node string, most int64) (given, wait int64) {
	held := b.held(a, node)
	if held.own >= maxHeld {
		return 0, b.until(held.first)
	}
	shape, there := a.d.Shape, a.after.Available(a.d.Shape, a.class)
	if enough := (shape.EffectiveBurst(a.class) + shortPart - 1) / shortPart; there < enough {
		wait, _ := a.after.RetryAfter(shape, a.class, enough)
		return 0, int64(wait)
	}
	// More than that is never out, so that who asks for more is worth no more.
	out := shape.TokensIn(time.Duration(a.lim.Limit.GetEscrow()))
	room := out - held.tokens
	given = min(most, room, there/givenPart)
	switch {
	case given >= max(1, min(most, out)/worthPart):
		return given, 0
	case held.tokens > 0 && room < there/givenPart:
		return 0, b.until(held.first)
	}
	return 0, 0
}

// look takes a copy of the bucket up to now.
func (b *Book) look(a *asked) {
	switch {
	case a.key == nil:
		a.after = a.d.Pristine.Clone()
	case a.key.Passed == a.lim.Now().Number:
		a.after = a.key.Held(a.index).Bucket.Clone()
	default:
		a.after = a.lim.Pass(a.name, a.key.All(a.lim.At(a.key.Passed)), a.key.Passed)[a.index].Bucket
	}
	b.state.Passage(a.lim, a.key).Bring(&a.after, a.d.Shape, 0)
}

// held is what nodes have of a bucket.
type held struct {
	// tokens is all that was given and has not ended, void or not, spent or not: who can't
	// spend it any more may still give it back (T40).
	tokens int64
	// own counts the records of one node for one class.
	own int
	// first is when the first of the bucket ends.
	first bucket.Instant
}

func (b *Book) held(a *asked, node string) held {
	sum, class := held{first: lineage.Never}, a.d.ClassName(a.class)
	// Sums and a least: the order does not matter.
	for _, e := range b.state.Ledger.OfKey(a.lim.ID, a.name) {
		if e.DimensionID != a.d.ID || b.state.Now >= e.Until {
			continue
		}
		sum.tokens += e.Amount
		sum.first = min(sum.first, e.Until)
		if e.ID.Node == node && e.Class == class {
			sum.own++
		}
	}
	return sum
}

// give takes the tokens and writes the record.
func (b *Book) give(a *asked, id record.EscrowID, n int64) *logv1.EscrowResult {
	took, ok := a.after.Take(a.d.Shape, a.class, n)
	if !ok {
		panic(fmt.Sprintf("escrow: %d of %d tokens of limit %q can't be taken",
			n, a.after.Available(a.d.Shape, a.class), a.lim.Name))
	}
	k := a.key
	if k == nil {
		k = b.state.AddKey(a.lim, a.name)
	} else {
		k = b.state.ChangeKey(a.lim, k)
	}
	k.Held(a.index).Bucket = a.after
	life := a.lim.Limit.GetEscrow()
	id.Node = b.state.Ledger.Given(id, b.state.Now)
	b.state.AddEscrow(a.lim, k, record.Escrow{
		ID: id, LimitID: a.lim.ID, DimensionID: a.d.ID, KeyName: k.Name, Class: a.d.ClassName(a.class),
		Amount: n, Took: took, TookUnit: a.d.Shape.Unit(),
		Version: a.lim.Now().Number, Until: b.state.Now + bucket.Instant(life),
	})
	return &logv1.EscrowResult{Outcome: logv1.EscrowResult_OUTCOME_GRANTED, Amount: n, Life: life}
}
