package fsm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/state"
)

// change is an ApplyLimits thought through: what there will be, and what is
// different. Nothing of the state has changed until commit.
type change struct {
	limits  []limitStep
	budgets []budgetStep
}

// limitStep is one limit before and after.
type limitStep struct {
	name string
	// old is nil for a limit that was never seen or is forgotten.
	old *state.Limit
	// before and after are nil where it is not configured.
	before, after *logv1.Limit
	lineage       *lineage.Lineage
}

// applyLimits changes limits and retry budgets as one change under one revision,
// or not at all.
func (m *Machine) applyLimits(op *logv1.ApplyLimits) (*logv1.Result, error) {
	c, err := m.thinkLimits(op)
	if err != nil {
		return nil, err
	}
	answer := c.answer(m.state.Revision)
	if len(answer.GetChanges()) > 0 {
		m.commitLimits(c)
		m.state.Revision++
		answer.Revision = m.state.Revision
		m.state.Remember(&Revision{
			Revision: m.state.Revision, Now: m.state.Now, Wall: m.state.Wall, Author: op.GetAuthor(),
			Changes: answer.GetChanges(),
		})
	}
	return &logv1.Result{Kind: &logv1.Result_Limits{Limits: answer}}, nil
}

// PlanLimits says what an ApplyLimits would change, with the revision that it
// would have. The error is a *Refused. Nothing changes.
func (m *Machine) PlanLimits(op *logv1.ApplyLimits) (*logv1.LimitsResult, error) {
	c, err := m.thinkLimits(op)
	if err != nil {
		return nil, err
	}
	answer := c.answer(m.state.Revision)
	if len(answer.GetChanges()) > 0 {
		answer.Revision++
	}
	return answer, nil
}

func (m *Machine) thinkLimits(op *logv1.ApplyLimits) (*change, error) {
	if op != nil && op.ExpectedRevision != nil && op.GetExpectedRevision() != m.state.Revision {
		return nil, refuse.For(logv1.Refusal_CAUSE_REVISION_CHANGED, "expected_revision",
			"%d: the revision is %d", op.GetExpectedRevision(), m.state.Revision)
	}
	if err := refuse.Text("author", op.GetAuthor(), 0, check.MaxText); err != nil {
		return nil, err
	}
	c := &change{}
	if err := m.thinkEachLimit(c, op); err != nil {
		return nil, err
	}
	if err := m.thinkBudgets(c, op); err != nil {
		return nil, err
	}
	fresh := 0
	for _, step := range c.limits {
		if step.old == nil {
			fresh++
		}
	}
	total, most := int64(m.state.Limits()+fresh), m.state.Caps.GetLimits()
	if fresh > 0 && total > most {
		return nil, refuse.Field("limits", "%d with the deleted ones that are remembered: at most %d", total, most)
	}
	return c, nil
}

// thinkEachLimit makes a step for every limit that becomes different, in the
// order of names.
func (m *Machine) thinkEachLimit(c *change, op *logv1.ApplyLimits) error {
	named := make(map[string]bool)
	if err := m.thinkChanged(c, op.GetLimits(), named); err != nil {
		return err
	}
	if err := m.thinkDeleted(c, op.GetDelete(), named); err != nil {
		return err
	}
	if op.GetPrune() {
		// The order does not matter: the steps are sorted below.
		for old := range m.state.AllLimits() {
			if old.Live() && !named[old.Name] {
				c.limits = append(c.limits, m.thinkDeletion(old))
			}
		}
	}
	slices.SortFunc(c.limits, func(a, b limitStep) int { return strings.Compare(a.name, b.name) })
	return nil
}

func (m *Machine) thinkChanged(c *change, limits []*logv1.Limit, named map[string]bool) error {
	for i, limit := range limits {
		if named[limit.GetName()] {
			return refuse.Field(refuse.At("limits", i, "name"), "%q: is there twice", check.Clip(limit.GetName()))
		}
		named[limit.GetName()] = true
		step, err := m.thinkLimit(limit)
		if err != nil {
			var field *lineage.FieldError
			if !errors.As(err, &field) {
				return err
			}
			return refuse.Field(refuse.At("limits", i, field.Field), "%s (limit %q)", field.Problem, check.Clip(limit.GetName()))
		}
		if step != nil {
			c.limits = append(c.limits, *step)
		}
	}
	return nil
}

func (m *Machine) thinkDeleted(c *change, names []string, named map[string]bool) error {
	for i, name := range names {
		if named[name] {
			return refuse.Field(fmt.Sprintf("delete[%d]", i), "%q: is there twice", check.Clip(name))
		}
		named[name] = true
		if old := m.state.FindLimit(name); old == nil || !old.Live() {
			return refuse.For(logv1.Refusal_CAUSE_LIMIT_NOT_FOUND, fmt.Sprintf("delete[%d]", i),
				"%q: there is no such limit", check.Clip(name))
		}
		c.limits = append(c.limits, m.thinkDeletion(m.state.FindLimit(name)))
	}
	return nil
}

func (m *Machine) thinkLimit(limit *logv1.Limit) (*limitStep, error) {
	if keys := limit.GetMaxKeys(); keys > m.state.Caps.GetKeys() {
		return nil, &lineage.FieldError{
			Field: "max_keys", Problem: fmt.Sprintf("%d: must be from 1 to %d", keys, m.state.Caps.GetKeys()),
		}
	}
	// A copy, so that nobody else can change it.
	step := &limitStep{name: limit.GetName(), old: m.state.FindLimit(limit.GetName()), after: proto.CloneOf(limit)}
	if step.old == nil {
		// Its number is given when the change is made.
		var err error
		step.lineage, err = lineage.New(0, step.after, m.state.Now)
		return step, err
	}
	step.before = step.old.Limit
	if proto.Equal(step.before, step.after) {
		return nil, nil
	}
	var err error
	step.lineage, err = step.old.Change(step.after, m.state.Now)
	return step, err
}

func (m *Machine) thinkDeletion(old *state.Limit) limitStep {
	gone, err := old.Change(nil, m.state.Now)
	if err != nil {
		panic(fmt.Sprintf("fsm: limit %q of %d dimensions can't be deleted: %v", old.Name, len(old.Now().Dimensions), err))
	}
	return limitStep{name: old.Name, old: old, before: old.Limit, lineage: gone}
}

func (c *change) answer(revision uint64) *logv1.LimitsResult {
	answer := &logv1.LimitsResult{Revision: revision}
	for _, step := range c.limits {
		answer.Changes = append(answer.Changes, &logv1.LimitChange{
			Name: step.name, LimitBefore: step.before, LimitAfter: step.after,
		})
	}
	for _, step := range c.budgets {
		answer.Changes = append(answer.Changes, &logv1.LimitChange{
			Name: step.name, BudgetBefore: step.before, BudgetAfter: step.after,
		})
	}
	return answer
}

func (m *Machine) commitLimits(c *change) {
	for _, step := range c.limits {
		lim := step.old
		if lim == nil {
			step.lineage.ID = m.state.NextLimit()
			lim = m.state.AddLimit(step.lineage)
		} else {
			m.voids(lim, m.state.ChangeLimit(lim, step.lineage))
		}
		switch {
		case step.after == nil:
			m.feedback.Forget(lim, "the limit was deleted")
			m.effects.Add(effect.Effect{Kind: effect.LimitDeleted, Limit: step.name})
			continue
		case step.before != nil && step.before.GetKeyed() != step.after.GetKeyed():
			m.feedback.Forget(lim, "the limit has no such key any more")
		}
		m.effects.Add(effect.Effect{Kind: effect.LimitChanged, Limit: step.name})
	}
	m.commitBudgets(c.budgets)
}

// voids tells that what nodes hold of a limit is void.
func (m *Machine) voids(lim *state.Limit, voided bool) {
	if voided {
		m.effects.Add(effect.Effect{Kind: effect.EscrowVoided, Limit: lim.Name})
	}
}
