package fsm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/retry"
	"github.com/quorlease/quorlease/fsm/window"
)

// budgets are the retry budgets, ready to be looked up.
type budgets struct {
	// list is in the order of names.
	list []*logv1.RetryBudget
	// exact has those for one client, prefixes those that end in a star, the
	// longest first: the most specific one counts.
	exact    map[string]*logv1.RetryBudget
	prefixes []prefix
}

type prefix struct {
	text   string
	budget *logv1.RetryBudget
}

// budgetStep is one retry budget before and after; nil where there is none.
type budgetStep struct {
	name          string
	before, after *logv1.RetryBudget
}

func newBudgets(list []*logv1.RetryBudget) budgets {
	b := budgets{list: list, exact: make(map[string]*logv1.RetryBudget)}
	for _, one := range list {
		if text, starred := strings.CutSuffix(one.GetClient(), "*"); starred {
			b.prefixes = append(b.prefixes, prefix{text, one})
			continue
		}
		b.exact[one.GetClient()] = one
	}
	slices.SortFunc(b.prefixes, func(x, y prefix) int { return len(y.text) - len(x.text) })
	return b
}

func (b *budgets) find(client string) *logv1.RetryBudget {
	if one := b.exact[client]; one != nil {
		return one
	}
	for _, p := range b.prefixes {
		if strings.HasPrefix(client, p.text) {
			return p.budget
		}
	}
	return nil
}

func (b *budgets) named(name string) *logv1.RetryBudget {
	i, found := slices.BinarySearchFunc(b.list, name, func(one *logv1.RetryBudget, name string) int {
		return strings.Compare(one.GetName(), name)
	})
	if !found {
		return nil
	}
	return b.list[i]
}

// BudgetFor is the retry budget of a client, nil where none fits. It must not be
// changed.
func (m *Machine) BudgetFor(client string) *logv1.RetryBudget { return m.budgets.find(client) }

// RuleOf is the rule of a retry budget.
func RuleOf(b *logv1.RetryBudget) retry.Rule {
	return retry.Rule{
		MaxRetries: b.GetMaxRetries(), MaxFraction: b.GetMaxFraction(), MinRequests: b.GetMinRequests(),
		Window: time.Duration(b.GetWindow()), RetryAfter: time.Duration(b.GetRetryAfter()),
	}
}

// thinkBudgets makes a step for every retry budget that becomes different, in
// the order of names.
func (m *Machine) thinkBudgets(c *change, op *logv1.ApplyLimits) error {
	named := make(map[string]bool)
	for i, b := range op.GetRetryBudgets() {
		if err := checkBudget(i, b); err != nil {
			return err
		}
		if named[b.GetName()] {
			return badField(at("retry_budgets", i, "name"), "%q: is there twice", b.GetName())
		}
		named[b.GetName()] = true
		before := m.budgets.named(b.GetName())
		if !proto.Equal(before, b) {
			c.budgets = append(c.budgets, budgetStep{b.GetName(), before, proto.CloneOf(b)})
		}
	}
	for i, name := range op.GetDeleteRetryBudgets() {
		field := fmt.Sprintf("delete_retry_budgets[%d]", i)
		if named[name] {
			return badField(field, "%q: is there twice", clip(name))
		}
		named[name] = true
		before := m.budgets.named(name)
		if before == nil {
			return refuse(logv1.Refusal_CAUSE_LIMIT_NOT_FOUND, field, "%q: there is no such retry budget", clip(name))
		}
		c.budgets = append(c.budgets, budgetStep{name, before, nil})
	}
	if op.GetPrune() {
		for _, b := range m.budgets.list {
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
	if n := int64(len(after)); len(steps) > 0 && n > m.caps.GetLimits() {
		return badField("retry_budgets", "%d: must be at most %d", n, m.caps.GetLimits())
	}
	byClient := make(map[string]string)
	for _, b := range after {
		if other, there := byClient[b.GetClient()]; there {
			return badField("retry_budgets", "%q and %q: are both for client %q", other, b.GetName(), b.GetClient())
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
	after := slices.DeleteFunc(slices.Clone(m.budgets.list), func(b *logv1.RetryBudget) bool { return gone[b.GetName()] })
	for _, step := range steps {
		if step.after != nil {
			after = append(after, step.after)
		}
	}
	slices.SortFunc(after, func(a, b *logv1.RetryBudget) int { return strings.Compare(a.GetName(), b.GetName()) })
	return after
}

// Bounds of a retry budget's durations.
const (
	minWindow = int64(300 * time.Millisecond)
	maxWindow = int64(7 * 24 * time.Hour)
	maxPause  = int64(24 * time.Hour)
)

func checkBudget(i int, b *logv1.RetryBudget) error {
	field := func(name string) string { return at("retry_budgets", i, name) }
	star := strings.IndexByte(b.GetClient(), '*')
	switch {
	case !lineage.IsName(b.GetName()):
		return badField(field("name"), "%q: is no name of a retry budget", clip(b.GetName()))
	case b.GetClient() == "" || len(b.GetClient()) > maxText || !printable(b.GetClient()):
		return badField(field("client"), "%q: must be 1 to %d bytes of valid UTF-8 without control characters",
			clip(b.GetClient()), maxText)
	case star >= 0 && star != len(b.GetClient())-1:
		return badField(field("client"), "%q: a star can only be the end", clip(b.GetClient()))
	case b.GetMaxFraction() < 0 || b.GetMaxFraction() >= retry.Whole:
		return badField(field("max_fraction"), "%d: must be from 0 to %d", b.GetMaxFraction(), retry.Whole-1)
	case b.GetMinRequests() < 0 || b.GetMinRequests() > bucket.MaxTokens:
		return badField(field("min_requests"), "%d: must be from 0 to %d", b.GetMinRequests(), int64(bucket.MaxTokens))
	case b.GetWindow() < minWindow || b.GetWindow() > maxWindow || b.GetWindow()%window.Slices != 0:
		return badField(field("window"), "%v: must be from %v to %v and a multiple of %v", time.Duration(b.GetWindow()),
			time.Duration(minWindow), time.Duration(maxWindow), time.Duration(window.Slices))
	case b.GetRetryAfter() < int64(time.Millisecond) || b.GetRetryAfter() > maxPause:
		return badField(field("retry_after"), "%v: must be from %v to %v", time.Duration(b.GetRetryAfter()),
			time.Millisecond, time.Duration(maxPause))
	}
	return nil
}

func (m *Machine) commitBudgets(steps []budgetStep) {
	if len(steps) == 0 {
		return
	}
	for _, step := range steps {
		if step.before != nil {
			m.sum -= sumBudget(step.before)
		}
		if step.after != nil {
			m.sum += sumBudget(step.after)
		}
		m.effect(Effect{Kind: BudgetChanged, Value: step.name})
	}
	m.budgets = newBudgets(m.budgetsAfter(steps))
	m.resliceClients()
}
