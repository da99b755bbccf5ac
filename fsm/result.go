package fsm

import (
	"errors"
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Refused is a Refusal as an error: the question was not answered, and nothing
// has changed.
type Refused struct{ *logv1.Refusal }

// Error is one line that names the field, where there is one, and the value.
func (r *Refused) Error() string {
	if r.GetField() == "" {
		return r.GetMessage()
	}
	return r.GetField() + ": " + r.GetMessage()
}

// Effect is something that an entry did and that others may want to know of:
// events, metrics, caches. It is no part of the state.
type Effect struct {
	Kind EffectKind
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

// EffectKind says what happened.
type EffectKind int

// The kinds of effects.
const (
	// LimitChanged: a limit was created or has other numbers.
	LimitChanged EffectKind = iota + 1
	// LimitDeleted: a limit is only remembered.
	LimitDeleted
	// BudgetChanged: a retry budget was created, changed or deleted.
	BudgetChanged
	// LeaseEnded: a tracked lease ended unreported and was charged in full.
	LeaseEnded
	// DebtWrittenOff: usage above the estimate was beyond max_debt.
	DebtWrittenOff
	// Adjusted: an operator changed a level by hand.
	Adjusted
	// NodeSet: a member's record is new or was changed.
	NodeSet
	// NodeRemoved: a member is forgotten.
	NodeRemoved
	// Formed: the cluster has an id.
	Formed
)

var effectNames = map[EffectKind]string{
	LimitChanged: "LimitChanged", LimitDeleted: "LimitDeleted", BudgetChanged: "BudgetChanged",
	LeaseEnded: "LeaseEnded", DebtWrittenOff: "DebtWrittenOff", Adjusted: "Adjusted",
	NodeSet: "NodeSet", NodeRemoved: "NodeRemoved", Formed: "Formed",
}

// String is the kind's name.
func (k EffectKind) String() string {
	if name, ok := effectNames[k]; ok {
		return name
	}
	return fmt.Sprintf("EffectKind(%d)", int(k))
}

func (m *Machine) effect(e Effect) {
	e.Index = m.state.Index
	m.effects = append(m.effects, e)
}

func refuse(cause logv1.Refusal_Cause, field, format string, values ...any) error {
	return &Refused{&logv1.Refusal{Cause: cause, Field: field, Message: fmt.Sprintf(format, values...)}}
}

func badField(field, format string, values ...any) error {
	return refuse(logv1.Refusal_CAUSE_BAD_FIELD, field, format, values...)
}

// refusal is a refused error as a result. Every error of an apply function is a
// *Refused.
func refusal(err error) *logv1.Result {
	var refused *Refused
	if !errors.As(err, &refused) {
		panic(fmt.Sprintf("fsm: %T %q is no refusal", err, err))
	}
	return &logv1.Result{Kind: &logv1.Result_Refusal{Refusal: refused.Refusal}}
}

func done() *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Done{Done: &logv1.Done{}}}
}

func leaseResult(r *logv1.LeaseResult) *logv1.Result {
	return &logv1.Result{Kind: &logv1.Result_Lease{Lease: r}}
}

// wholeMillis rounds a wait up to whole milliseconds, at least one.
func wholeMillis(wait int64) int64 {
	const milli = int64(time.Millisecond)
	return max(1, wait/milli+min(1, wait%milli)) * milli
}
