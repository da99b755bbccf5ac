package fsm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/retry"
)

// budgetStep is one retry budget before and after; nil where there is none.
type budgetStep struct {
	name          string
	before, after *logv1.RetryBudget
}

// BudgetFor is the retry budget of a client, nil where none fits. It must not be
// changed.
func (m *Machine) BudgetFor(client string) *logv1.RetryBudget { return m.state.BudgetFor(client) }

// Budgeted reports whether there is a retry budget.
func (m *Machine) Budgeted() bool { return len(m.state.Budgets()) > 0 }

// RuleOf is the rule of a retry budget, whatever its mode makes of it.
func RuleOf(b *logv1.RetryBudget) retry.Rule {
	return retry.Rule{
		MaxRetries: b.GetMaxRetries(), MaxFraction: b.GetMaxFraction(), MinRequests: b.GetMinRequests(),
		Window: time.Duration(b.GetWindow()), RetryAfter: time.Duration(b.GetRetryAfter()),
		MinRetries: b.GetMinRetries(), MinInterval: time.Duration(b.GetMinRetriesInterval()),
		Scope: retry.Scope(b.GetScope()),
	}
}

// thinkBudgets makes a step for every retry budget that becomes different, in
// the order of names.
func (m *Machine) thinkBudgets(c *change, op *logv1.ApplyLimits) error {
	named := make(map[string]bool)
	for i, b := range op.GetRetryBudgets() {
		if err := check.Budget(b); err != nil {
			return refuse.Wrong(fmt.Sprintf("retry_budgets[%d].", i), err)
		}
		if named[b.GetName()] {
			return refuse.Field(refuse.At("retry_budgets", i, "name"), "%q: is there twice", b.GetName())
		}
		named[b.GetName()] = true
		before := m.state.FindBudget(b.GetName())
		if !proto.Equal(before, b) {
			c.budgets = append(c.budgets, budgetStep{b.GetName(), before, proto.CloneOf(b)})
		}
	}
	for i, name := range op.GetDeleteRetryBudgets() {
		field := fmt.Sprintf("delete_retry_budgets[%d]", i)
		if named[name] {
			return refuse.Field(field, "%q: is there twice", check.Clip(name))
		}
		named[name] = true
		before := m.state.FindBudget(name)
		if before == nil {
			return refuse.For(logv1.Refusal_CAUSE_LIMIT_NOT_FOUND, field, "%q: there is no such retry budget", check.Clip(name))
		}
		c.budgets = append(c.budgets, budgetStep{name, before, nil})
	}
	if op.GetPrune() {
		for _, b := range m.state.Budgets() {
			if !named[b.GetName()] {
				c.budgets = append(c.budgets, budgetStep{b.GetName(), b, nil})
			}
		}
	}
	slices.SortFunc(c.budgets, func(a, b budgetStep) int { return strings.Compare(a.name, b.name) })
	return m.checkClients(c.budgets)
}

// checkClients refuses two budgets for the same clients, since it would be
// chance which one counts, and more budgets than there may be limits.
func (m *Machine) checkClients(steps []budgetStep) error {
	after := m.budgetsAfter(steps)
	if n := int64(len(after)); len(steps) > 0 && n > m.state.Caps.GetLimits() {
		return refuse.Field("retry_budgets", "%d: must be at most %d", n, m.state.Caps.GetLimits())
	}
	byClient := make(map[string]string)
	for _, b := range after {
		if other, there := byClient[b.GetClient()]; there {
			return refuse.Field("retry_budgets", "%q and %q: are both for client %q", other, b.GetName(), b.GetClient())
		}
		byClient[b.GetClient()] = b.GetName()
	}
	return nil
}

func (m *Machine) budgetsAfter(steps []budgetStep) []*logv1.RetryBudget {
	gone := make(map[string]bool)
	for _, step := range steps {
		gone[step.name] = true
	}
	after := slices.Clone(m.state.Budgets())
	after = slices.DeleteFunc(after, func(b *logv1.RetryBudget) bool { return gone[b.GetName()] })
	for _, step := range steps {
		if step.after != nil {
			after = append(after, step.after)
		}
	}
	slices.SortFunc(after, func(a, b *logv1.RetryBudget) int { return strings.Compare(a.GetName(), b.GetName()) })
	return after
}

func (m *Machine) commitBudgets(steps []budgetStep) {
	if len(steps) == 0 {
		return
	}
	for _, step := range steps {
		m.effects.Add(effect.Effect{Kind: effect.BudgetChanged, Value: step.name})
	}
	m.state.SetBudgets(m.budgetsAfter(steps))
}
