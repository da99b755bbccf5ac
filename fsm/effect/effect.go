// Package effect names what an entry did that others may want to know of.
package effect

import (
	"fmt"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Effect is something that an entry did and that others may want to know of:
// events, metrics, caches. It is no part of the state.
type Effect struct {
	Kind Kind
	// Index is that of the entry.
	Index uint64
	// Which limit, key and dimension, where it is about one.
	Limit, Key, Dimension string
	// Client is who the work was for.
	Client string
	// Node is the member's record.
	Node *logv1.NodeRecord
	// Value is a number or a name for machines, Text a sentence for people.
	Value, Text string
}

// Kind says what happened.
type Kind int

// The kinds of effects.
const (
	// LimitChanged: a limit was created or has other numbers.
	LimitChanged Kind = iota + 1
	// LimitDeleted: a limit is only remembered.
	LimitDeleted
	// BudgetChanged: a retry budget was created, changed or deleted.
	BudgetChanged
	// LeaseEnded: a tracked lease ended unreported and was charged in full.
	LeaseEnded
	// SlotsFreed: slots came back; Value is how many.
	SlotsFreed
	// DebtWrittenOff: usage above the estimate was beyond max_debt.
	DebtWrittenOff
	// LimitWarning: a limit in mode warn would have refused; Value is the reason's name.
	LimitWarning
	// QuotaWarning: as much of a quota is used as Value says, in hundredths of a percent:
	// once a window and part.
	QuotaWarning
	// WindowRolled: a quota is in its next window, which ends at Value, in Unix
	// nanoseconds.
	WindowRolled
	// Adjusted: an operator changed a level by hand.
	Adjusted
	// LimitPaused: a provider throttled, and a key is closed for a time or slower.
	LimitPaused
	// LimitBlocked: a key is closed until a person clears it.
	LimitBlocked
	// SpendCapReached: a provider says that no money is left.
	SpendCapReached
	// LimitCleared: a key is open again, on an operator's word.
	LimitCleared
	// EscrowVoided: what nodes hold of a key, or of all keys where Key is empty, can't be
	// spent any more.
	EscrowVoided
	// EscrowReturned: a node gave back some of what it held of a key.
	EscrowReturned
	// NodeSet: a member's record is new or was changed.
	NodeSet
	// NodeRemoved: a member is forgotten.
	NodeRemoved
	// Formed: the cluster has an id.
	Formed
)

var names = map[Kind]string{
	LimitChanged: "LimitChanged", LimitDeleted: "LimitDeleted", BudgetChanged: "BudgetChanged",
	LimitPaused: "LimitPaused", LimitBlocked: "LimitBlocked", SpendCapReached: "SpendCapReached",
	SlotsFreed: "SlotsFreed", LimitWarning: "LimitWarning", QuotaWarning: "QuotaWarning", WindowRolled: "WindowRolled",
	LimitCleared: "LimitCleared", EscrowVoided: "EscrowVoided", EscrowReturned: "EscrowReturned",
	LeaseEnded: "LeaseEnded", DebtWrittenOff: "DebtWrittenOff", Adjusted: "Adjusted",
	NodeSet: "NodeSet", NodeRemoved: "NodeRemoved", Formed: "Formed",
}

// String is the kind's name.
func (k Kind) String() string {
	if name, ok := names[k]; ok {
		return name
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// List collects the effects of one entry.
type List struct {
	index uint64
	all   []Effect
}

// Begin empties the list for the entry with an index. What All returned stays.
func (l *List) Begin(index uint64) { l.index, l.all = index, nil }

// Add adds an effect of the entry.
func (l *List) Add(e Effect) {
	e.Index = l.index
	l.all = append(l.all, e)
}

// All are the effects of the entry in their order.
func (l *List) All() []Effect { return l.all }
