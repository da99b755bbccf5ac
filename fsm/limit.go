package fsm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// versionsMost is how many versions of a limit may wait for keys to pass them.
// Beyond it all keys of the limit are taken to the version now, so that a file
// applied in a loop costs no memory.
const versionsMost = 32

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
	old *limit
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
	answer := c.answer(m.revision)
	if len(answer.GetChanges()) > 0 {
		m.commitLimits(c)
		m.revision++
		answer.Revision = m.revision
		m.remember(&Revision{
			Revision: m.revision, Now: m.clock.now, Wall: m.clock.wall, Author: op.GetAuthor(),
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
	answer := c.answer(m.revision)
	if len(answer.GetChanges()) > 0 {
		answer.Revision++
	}
	return answer, nil
}

func (m *Machine) thinkLimits(op *logv1.ApplyLimits) (*change, error) {
	if op != nil && op.ExpectedRevision != nil && op.GetExpectedRevision() != m.revision {
		return nil, refuse(logv1.Refusal_CAUSE_REVISION_CHANGED, "expected_revision",
			"%d: the revision is %d", op.GetExpectedRevision(), m.revision)
	}
	if err := checkText("author", op.GetAuthor(), 0, maxText); err != nil {
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
	if total := int64(len(m.limits) + fresh); fresh > 0 && total > m.caps.GetLimits() {
		return nil, badField("limits", "%d with the deleted ones that are remembered: at most %d", total, m.caps.GetLimits())
	}
	return c, nil
}

// thinkEachLimit makes a step for every limit that becomes different, in the
// order of names.
func (m *Machine) thinkEachLimit(c *change, op *logv1.ApplyLimits) error {
	named := make(map[string]bool)
	for i, limit := range op.GetLimits() {
		if named[limit.GetName()] {
			return badField(at("limits", i, "name"), "%q: is there twice", clip(limit.GetName()))
		}
		named[limit.GetName()] = true
		step, err := m.thinkLimit(limit)
		if err != nil {
			var field *lineage.FieldError
			if !errors.As(err, &field) {
				return err
			}
			return badField(at("limits", i, field.Field), "%s (limit %q)", field.Problem, clip(limit.GetName()))
		}
		if step != nil {
			c.limits = append(c.limits, *step)
		}
	}
	for i, name := range op.GetDelete() {
		if named[name] {
			return badField(fmt.Sprintf("delete[%d]", i), "%q: is there twice", clip(name))
		}
		named[name] = true
		if old := m.limits[name]; old == nil || !old.live() {
			return refuse(logv1.Refusal_CAUSE_LIMIT_NOT_FOUND, fmt.Sprintf("delete[%d]", i),
				"%q: there is no such limit", clip(name))
		}
		c.limits = append(c.limits, m.thinkDeletion(name))
	}
	if op.GetPrune() {
		// The order does not matter: the steps are sorted below.
		for name, old := range m.limits {
			if old.live() && !named[name] {
				c.limits = append(c.limits, m.thinkDeletion(name))
			}
		}
	}
	slices.SortFunc(c.limits, func(a, b limitStep) int { return strings.Compare(a.name, b.name) })
	return nil
}

func (m *Machine) thinkLimit(limit *logv1.Limit) (*limitStep, error) {
	if keys := limit.GetMaxKeys(); keys > m.caps.GetKeys() {
		return nil, &lineage.FieldError{
			Field: "max_keys", Problem: fmt.Sprintf("%d: must be from 1 to %d", keys, m.caps.GetKeys()),
		}
	}
	// A copy, so that nobody else can change it.
	step := &limitStep{name: limit.GetName(), old: m.limits[limit.GetName()], after: proto.CloneOf(limit)}
	if step.old == nil {
		// Its number is given when the change is made.
		var err error
		step.lineage, err = lineage.New(0, step.after, m.clock.now)
		return step, err
	}
	step.before = step.old.Limit
	if proto.Equal(step.before, step.after) {
		return nil, nil
	}
	var err error
	step.lineage, err = step.old.Change(step.after, m.clock.now)
	return step, err
}

func (m *Machine) thinkDeletion(name string) limitStep {
	old := m.limits[name]
	gone, err := old.Change(nil, m.clock.now)
	if err != nil {
		panic(fmt.Sprintf("fsm: limit %q of %d dimensions can't be deleted: %v", name, len(old.Now().Dimensions), err))
	}
	return limitStep{name: name, old: old, before: old.Limit, lineage: gone}
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
			step.lineage.ID = m.nextLimit
			m.nextLimit++
			lim = m.addLimit(step.lineage)
		} else {
			m.setLineage(lim, step.lineage)
		}
		if len(lim.Versions) > versionsMost {
			m.passAll(lim)
		}
		if step.after == nil {
			m.effect(Effect{Kind: LimitDeleted, Limit: step.name})
			continue
		}
		m.effect(Effect{Kind: LimitChanged, Limit: step.name})
	}
	m.commitBudgets(c.budgets)
}

// passAll takes every key of the limit to the version now. The order does not
// matter, and no key moves in the queue until the entry is sealed.
func (m *Machine) passAll(lim *limit) {
	for k := range lim.keys.All() {
		m.current(lim, k)
	}
}
