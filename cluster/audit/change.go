package audit

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/effect"
)

// Change is one line for what an operator did. Fields are added, and never change their
// meaning.
type Change struct {
	// Time is the leader's wall clock when it was proposed.
	Time time.Time `json:"time"`
	// Node is the one that writes: all write all changes.
	Node string `json:"node"`
	// Change is "added", "changed", "deleted", "adjusted" or "cleared"; of a member
	// "added", "moved", "promoted", "demoted" or "removed".
	Change string `json:"change"`
	// Index is that of the log entry. A node that starts again may write a change again,
	// under the same one.
	Index uint64 `json:"index"`
	// Revision is that of limits and retry budgets, of which there may be several a
	// change.
	Revision    uint64 `json:"revision,omitempty"`
	Author      string `json:"author"`
	Limit       string `json:"limit,omitempty"`
	RetryBudget string `json:"retry_budget,omitempty"`
	Key         string `json:"key,omitempty"`
	Dimension   string `json:"dimension,omitempty"`
	Member      string `json:"member,omitempty"`
	// Value is what was adjusted: "+5", "-5" or "reset"; or the peer address of a member.
	Value  string `json:"value,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// reasonMost is in bytes.
const reasonMost = 512

// Entry is what of an applied entry an audit is about.
type Entry struct {
	Index   uint64
	Wall    time.Time
	Results []*logv1.Result
	Effects []effect.Effect
}

// Applied records what an entry changed by an operator's word. revisions are the last
// ones of the history; it is called only where the entry has made some. It never waits.
func (l *Log) Applied(e Entry, revisions func() []*fsm.Revision) {
	if l == nil {
		return
	}
	made := false
	for _, f := range e.Effects {
		c := Change{
			Time: e.Wall.UTC(), Index: e.Index, Author: bounded(f.Client, nameMost), Limit: f.Limit,
			Key: bounded(f.Key, keyMost), Dimension: f.Dimension, Value: f.Value, Reason: bounded(f.Text, reasonMost),
		}
		switch f.Kind {
		case effect.Adjusted:
			c.Change = "adjusted"
			l.Changed(c)
		case effect.LimitCleared:
			c.Change = "cleared"
			l.Changed(c)
		case effect.LimitChanged, effect.LimitDeleted, effect.BudgetChanged:
			made = true
		default:
			// No operator did it.
		}
	}
	if !made {
		return
	}
	known := revisions()
	for _, r := range e.Results {
		if limits := r.GetLimits(); len(limits.GetChanges()) > 0 {
			l.revised(e, limits, authorOf(known, limits.GetRevision()))
		}
	}
}

func authorOf(known []*fsm.Revision, revision uint64) string {
	for _, r := range known {
		if r.Revision == revision {
			return r.Author
		}
	}
	return ""
}

// revised records the changes of one revision.
func (l *Log) revised(e Entry, r *logv1.LimitsResult, author string) {
	list := make([]Change, 0, len(r.GetChanges()))
	for _, one := range r.GetChanges() {
		c := Change{
			Time: e.Wall.UTC(), Index: e.Index, Revision: r.GetRevision(), Author: bounded(author, nameMost),
			Limit: one.GetName(), Change: verb(one.GetLimitBefore() != nil, one.GetLimitAfter() != nil),
		}
		if before, after := one.GetBudgetBefore() != nil, one.GetBudgetAfter() != nil; before || after {
			c.Limit, c.RetryBudget, c.Change = "", one.GetName(), verb(before, after)
		}
		list = append(list, c)
	}
	l.Changed(list...)
}

func verb(before, after bool) string {
	switch {
	case before && after:
		return "changed"
	case after:
		return "added"
	}
	return "deleted"
}
