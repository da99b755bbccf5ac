package record

import (
	"cmp"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/lineage"
)

const (
	tagEscrow = 13
	tagAsker  = 15
	// longestEscrow is the longest life that a limit can give.
	longestEscrow = bucket.Instant(24 * time.Hour)
)

// EscrowID names tokens that a node asked for.
type EscrowID struct {
	Node           string
	Boot, Sequence uint64
}

// Compare orders ids.
func (id *EscrowID) Compare(o *EscrowID) int {
	return cmp.Or(strings.Compare(id.Node, o.Node), cmp.Compare(id.Boot, o.Boot), cmp.Compare(id.Sequence, o.Sequence))
}

// EscrowIDOf is an id on the wire.
func EscrowIDOf(id *logv1.EscrowID) EscrowID {
	return EscrowID{Node: id.GetNode(), Boot: id.GetBoot(), Sequence: id.GetSequence()}
}

func (id *EscrowID) save() *logv1.EscrowID {
	return &logv1.EscrowID{Node: id.Node, Boot: id.Boot, Sequence: id.Sequence}
}

// Escrow is tokens of one bucket that one node was given for one class.
type Escrow struct {
	ID                   EscrowID
	LimitID, DimensionID uint32
	KeyName, Class       string
	// Amount is the tokens that were given, Paid those of them that tracked leases were
	// paid with.
	Amount, Paid int64
	// Took is what of the rest came from the class's own sub-bucket, in units of which
	// a token has TookUnit.
	Took, TookUnit int64
	// Version is that of the limit under which it was given. Under another one it is
	// void.
	Version uint32
	// Until is when it ends.
	Until bucket.Instant
	// Void: feedback closed or slowed the key.
	Void bool
}

// Left is the tokens that no lease was paid with.
func (e *Escrow) Left() int64 { return e.Amount - e.Paid }

// Sum is the digest of the record.
func (e *Escrow) Sum() uint64 {
	sum := digest.New(tagEscrow)
	sum.Text(e.ID.Node)
	sum.Word(e.ID.Boot)
	sum.Word(e.ID.Sequence)
	sum.Word(uint64(e.LimitID)<<32 | uint64(e.DimensionID))
	sum.Text(e.KeyName)
	sum.Text(e.Class)
	sum.Int(e.Amount)
	sum.Int(e.Paid)
	sum.Int(e.Took)
	sum.Int(e.TookUnit)
	sum.Word(uint64(e.Version))
	sum.Int(int64(e.Until))
	sum.Bool(e.Void)
	return sum.Value()
}

// Save is the escrow for a snapshot.
func (e *Escrow) Save() *logv1.SnapshotEscrow {
	return &logv1.SnapshotEscrow{
		Id: e.ID.save(), Limit: e.LimitID, Dimension: e.DimensionID, Key: e.KeyName, Class: e.Class,
		Amount: e.Amount, Paid: e.Paid, Took: e.Took, TookUnit: e.TookUnit,
		Version: e.Version, Until: int64(e.Until), Void: e.Void,
	}
}

// LoadEscrow makes an escrow of what Save made, and checks all that can be seen
// without other records. The error is a frames.ErrCorrupt.
func LoadEscrow(saved *logv1.SnapshotEscrow, now bucket.Instant) (Escrow, error) {
	e := Escrow{
		ID: EscrowIDOf(saved.GetId()), LimitID: saved.GetLimit(), DimensionID: saved.GetDimension(),
		KeyName: saved.GetKey(), Class: saved.GetClass(), Amount: saved.GetAmount(), Paid: saved.GetPaid(),
		Took: saved.GetTook(), TookUnit: saved.GetTookUnit(), Version: saved.GetVersion(),
		Until: bucket.Instant(saved.GetUntil()), Void: saved.GetVoid(),
	}
	corrupt := func(format string, values ...any) (Escrow, error) {
		return Escrow{}, frames.Corrupt("escrow %d of node %q: "+format,
			append([]any{e.ID.Sequence, check.Clip(e.ID.Node)}, values...)...)
	}
	if err := check.Text("node", e.ID.Node, 1, check.MaxText); err != nil {
		return corrupt("%v", err)
	}
	switch {
	case e.ID.Sequence == 0:
		return corrupt("sequences begin with 1")
	case e.Amount < 1 || e.Amount > bucket.MaxTokens || e.Paid < 0 || e.Paid > e.Amount:
		return corrupt("%d tokens, %d paid", e.Amount, e.Paid)
	case e.Took < 0 || e.TookUnit < 1:
		return corrupt("took %d of %d", e.Took, e.TookUnit)
	case e.Class != "" && !lineage.IsWord(e.Class):
		return corrupt("class %q", check.Clip(e.Class))
	case e.Until < 0 || e.Until > now+longestEscrow:
		return corrupt("until %d, now is %d", e.Until, now)
	}
	return e, nil
}

// Asker is a process that was given escrow.
type Asker struct {
	Node string
	Boot uint64
	// Highest is the highest sequence that it was given any under.
	Highest uint64
	// At is when that was.
	At bucket.Instant
}

// Compare orders askers by node and boot.
func (a *Asker) Compare(o *Asker) int {
	return cmp.Or(strings.Compare(a.Node, o.Node), cmp.Compare(a.Boot, o.Boot))
}

// Sum is the digest of the record.
func (a *Asker) Sum() uint64 {
	sum := digest.New(tagAsker)
	sum.Text(a.Node)
	sum.Word(a.Boot)
	sum.Word(a.Highest)
	sum.Int(int64(a.At))
	return sum.Value()
}

// Save is the asker for a snapshot.
func (a *Asker) Save() *logv1.SnapshotAsker {
	last := EscrowID{Node: a.Node, Boot: a.Boot, Sequence: a.Highest}
	return &logv1.SnapshotAsker{Last: last.save(), At: int64(a.At)}
}

// LoadAsker makes an asker of what Save made, and checks it. The error is a
// frames.ErrCorrupt.
func LoadAsker(saved *logv1.SnapshotAsker, now bucket.Instant) (Asker, error) {
	last := EscrowIDOf(saved.GetLast())
	a := Asker{Node: last.Node, Boot: last.Boot, Highest: last.Sequence, At: bucket.Instant(saved.GetAt())}
	if err := check.Text("node", a.Node, 1, check.MaxText); err != nil {
		return Asker{}, frames.Corrupt("asker: %v", err)
	}
	if a.Highest == 0 || a.At < 0 || a.At > now {
		return Asker{}, frames.Corrupt("asker %q: sequence %d at %d, now is %d", check.Clip(a.Node), a.Highest, a.At, now)
	}
	return a, nil
}
