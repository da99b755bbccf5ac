package fsm

import (
	"cmp"
	"slices"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/window"
)

const (
	// sourcesMost bounds the processes that a client's counts come from: those of
	// all nodes, and of their restarts within one window.
	sourcesMost = 32
	// slicesMost bounds one report.
	slicesMost = 8192
	// countMost bounds a count, so that the sum over a window of all sources
	// fits.
	countMost = int64(1) << 40
)

// client is what the nodes have reported of one client, process by process.
type client struct {
	name    string
	version uint32 // of the table: when it was last copied
	place   int32
	touched bool
	// slice is the length of the slices that the counts are in.
	slice time.Duration
	// sources are in the order of (node, boot).
	sources []source
	digest  uint64
}

// source is one process of one node. A count that arrives twice, late or out of
// order does no harm: the maximum counts (T29).
type source struct {
	node   string
	boot   uint64
	counts window.Counts
}

// ID, Generation and Clone are for the table, Place and Before for the queue.
func (c *client) ID() string            { return c.name }
func (c *client) Generation() *uint32   { return &c.version }
func (c *client) Place() *int32         { return &c.place }
func (c *client) Before(o *client) bool { return c.name < o.name }

func (c *client) Clone() *client {
	fresh := *c
	fresh.sources = slices.Clone(c.sources)
	for i := range fresh.sources {
		fresh.sources[i].counts = c.sources[i].counts.Clone()
	}
	return &fresh
}

func (s *source) compare(node string, boot uint64) int {
	if c := cmp.Compare(s.node, node); c != 0 {
		return c
	}
	return cmp.Compare(s.boot, boot)
}

// source is the index of a process, or where it would have to be.
func (c *client) source(node string, boot uint64) (int, bool) {
	return slices.BinarySearchFunc(c.sources, node, func(s source, node string) int { return s.compare(node, boot) })
}

// newest is the last slice with a count.
func (s *source) newest() int64 {
	last := int64(-1)
	s.counts.Walk(func(slice, _, _ int64) { last = slice })
	return last
}

// applyReportRetries takes one node's cumulative counts. There is nothing to
// refuse in a slice that is out of the window, or beyond the cap: it does not
// count.
func (m *Machine) applyReportRetries(op *logv1.ReportRetries) (*logv1.Result, error) {
	if err := checkText("node", op.GetNode(), 1, maxText); err != nil {
		return nil, err
	}
	if n := len(op.GetSlices()); n > slicesMost {
		return nil, badField("slices", "%d: must be at most %d", n, slicesMost)
	}
	for i, s := range op.GetSlices() {
		if err := checkText(at("slices", i, "client"), s.GetClient(), 1, maxText); err != nil {
			return nil, err
		}
		if s.GetTotal() < 0 || s.GetTotal() > countMost || s.GetRetries() < 0 || s.GetRetries() > s.GetTotal() {
			return nil, badField(at("slices", i, "total"), "%d with %d retries: must be from 0 to %d, and the retries among them",
				s.GetTotal(), s.GetRetries(), countMost)
		}
	}
	for _, s := range op.GetSlices() {
		m.report(op.GetNode(), op.GetBoot(), s)
	}
	return done(), nil
}

func (m *Machine) report(node string, boot uint64, s *logv1.ClientSlice) {
	c := m.clients.Find(s.GetClient())
	length := m.sliceOf(s.GetClient())
	now := window.At(int64(m.clock.now), length)
	slice, ok := window.Place(now, s.GetSlice())
	if !ok || s.GetTotal() == 0 {
		return
	}
	if c == nil {
		if int64(m.clients.Len()) >= m.caps.GetClients() {
			return
		}
		c = &client{name: s.GetClient(), slice: length}
		m.clients.Insert(c)
	}
	c = m.touchClient(c)
	i, found := c.source(node, boot)
	if !found {
		c.dropSources(now)
		i, _ = c.source(node, boot)
		c.sources = slices.Insert(c.sources, i, source{node: node, boot: boot})
	}
	counts := &c.sources[i].counts
	counts.Drop(now)
	counts.SetMax(slice, s.GetTotal(), s.GetRetries())
}

// dropSources makes room for one more source: those whose window is over go,
// and beyond the bound the one that was silent the longest.
func (c *client) dropSources(now int64) {
	for i := range c.sources {
		c.sources[i].counts.Drop(now)
	}
	c.sources = slices.DeleteFunc(c.sources, func(s source) bool { return s.counts.Len() == 0 })
	if len(c.sources) < sourcesMost {
		return
	}
	silent := 0
	for i := range c.sources {
		if c.sources[i].newest() < c.sources[silent].newest() {
			silent = i
		}
	}
	c.sources = slices.Delete(c.sources, silent, silent+1)
}

// sliceOf is the length of the slices in which a client is counted.
func (m *Machine) sliceOf(name string) time.Duration {
	if b := m.budgets.find(name); b != nil {
		return window.Length(time.Duration(b.GetWindow()))
	}
	return window.Length(5 * time.Minute)
}

// due is when the last count has left the window.
func (c *client) due() bucket.Instant {
	last := int64(-window.Slices)
	for i := range c.sources {
		last = max(last, c.sources[i].newest())
	}
	end := last + window.Slices
	if end > int64(lineage.Never)/int64(c.slice) {
		return lineage.Never
	}
	return bucket.Instant(end * int64(c.slice))
}

func (m *Machine) sweepClients() {
	for range sweepMost {
		c, at := m.dueClients.Top()
		if at > int64(m.clock.now) {
			return
		}
		m.sum -= c.digest
		m.dueClients.Remove(c)
		m.clients.Remove(c)
	}
}

// resliceClients counts in slices of the length that the retry budgets ask for
// now. The counts so far keep their sums and, within a slice, their time.
func (m *Machine) resliceClients() {
	var changed []*client
	// The order does not matter: each client is changed by itself.
	for c := range m.clients.All() {
		if m.sliceOf(c.name) != c.slice {
			changed = append(changed, c)
		}
	}
	for _, c := range changed {
		m.touchClient(c).reslice(m.sliceOf(c.name))
	}
}

func (c *client) reslice(length time.Duration) {
	for i := range c.sources {
		var counts window.Counts
		c.sources[i].counts.Walk(func(slice, total, retries int64) {
			counts.Add(window.At(slice*int64(c.slice), length), total, retries)
		})
		c.sources[i].counts = counts
	}
	c.slice = length
}

func (m *Machine) touchClient(c *client) *client {
	if c.touched {
		return c
	}
	own := m.clients.Own(c)
	if own != c {
		m.dueClients.Renew(own)
	}
	own.touched = true
	m.sum -= own.digest
	m.touched.clients = append(m.touched.clients, own)
	return own
}

func (m *Machine) sealClient(c *client) {
	if !c.touched {
		return
	}
	c.touched = false
	sum := digest.New(tagClient)
	sum.Text(c.name)
	sum.Int(int64(c.slice))
	for i := range c.sources {
		s := &c.sources[i]
		sum.Text(s.node)
		sum.Word(s.boot)
		sum.Word(uint64(s.counts.Len()))
		s.counts.Walk(func(slice, total, retries int64) {
			sum.Int(slice)
			sum.Int(total)
			sum.Int(retries)
		})
	}
	c.digest = sum.Value()
	m.sum += c.digest
	m.dueClients.Set(c, int64(c.due()))
}

// ClientCounts is what a client was admitted in the window of its retry budget,
// as far as the nodes have reported.
func (m *Machine) ClientCounts(now bucket.Instant, name string) (total, retries int64) {
	c := m.clients.Find(name)
	if c == nil {
		return 0, 0
	}
	return c.counts(max(now, m.clock.now))
}

func (c *client) counts(now bucket.Instant) (total, retries int64) {
	slice := window.At(int64(now), c.slice)
	for i := range c.sources {
		t, r := c.sources[i].counts.Sum(slice)
		total += t
		retries += r
	}
	return total, retries
}

// Counted is what this replica has applied of one process's reports of a client
// in one slice. A node forgets its own count of a slice once it is here (T31).
func (m *Machine) Counted(node string, boot uint64, name string, slice int64) (total, retries int64) {
	c := m.clients.Find(name)
	if c == nil {
		return 0, 0
	}
	i, found := c.source(node, boot)
	if !found {
		return 0, 0
	}
	return c.sources[i].counts.Slice(slice)
}

// ClientStat is how one client stands with its retry budget.
type ClientStat struct {
	Client string
	// Total and Retries were admitted in the window.
	Total, Retries int64
	// Left is how many retries the budget still lets through.
	Left int64
	// Budget is the name of the retry budget, empty where none fits.
	Budget string
	// Over: the budget refuses the client now.
	Over bool
}

// Clients are the clients with most retries, at most top; all where top is 0.
func (m *Machine) Clients(now bucket.Instant, top int) []ClientStat {
	list := make([]ClientStat, 0, m.clients.Len())
	// The order does not matter: the list is sorted below.
	for c := range m.clients.All() {
		total, retries := c.counts(max(now, m.clock.now))
		if total == 0 {
			continue
		}
		list = append(list, ClientStat{Client: c.name, Total: total, Retries: retries})
	}
	slices.SortFunc(list, func(a, b ClientStat) int {
		return cmp.Or(cmp.Compare(b.Retries, a.Retries), cmp.Compare(b.Total, a.Total), strings.Compare(a.Client, b.Client))
	})
	if top > 0 && top < len(list) {
		list = list[:top]
	}
	for i := range list {
		s := &list[i]
		if b := m.budgets.find(s.Client); b != nil {
			rule := RuleOf(b)
			s.Budget, s.Left = b.GetName(), rule.Headroom(s.Total, s.Retries)
			s.Over = s.Left == 0
		}
	}
	return list
}
