package state

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/lineage"
	"github.com/quorlease/quorlease/fsm/window"
)

const (
	// MaxCount bounds a count, so that the sum over a window of all sources fits.
	MaxCount = int64(1) << 40
	// maxSources bounds the processes that a client's counts come from: those of
	// all nodes, and of their restarts within one window.
	maxSources = 32
	// defaultWindow counts clients that no retry budget is for.
	defaultWindow = 5 * time.Minute
)

// Client is what the nodes have reported of one client, process by process.
type Client struct {
	Name       string
	generation uint32
	place      int32
	touched    bool
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

// Key, Generation and Clone are for the table, Place and Before for the queue.
func (c *Client) Key() string           { return c.Name }
func (c *Client) Generation() *uint32   { return &c.generation }
func (c *Client) Place() *int32         { return &c.place }
func (c *Client) Before(o *Client) bool { return c.Name < o.Name }

func (c *Client) Clone() *Client {
	fresh := *c
	fresh.sources = slices.Clone(c.sources)
	for i := range fresh.sources {
		fresh.sources[i].counts = c.sources[i].counts.Clone()
	}
	return &fresh
}

func (c *Client) sum() uint64 {
	sum := digest.New(tagClient)
	sum.Text(c.Name)
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
	return sum.Value()
}

// Counts is what the client was admitted in the window that ends at now.
func (c *Client) Counts(now bucket.Instant) (total, retries int64) {
	slice := window.At(int64(now), c.slice)
	for i := range c.sources {
		t, r := c.sources[i].counts.Sum(slice)
		total += t
		retries += r
	}
	return total, retries
}

// Counted is what one process has reported of one slice.
func (c *Client) Counted(node string, boot uint64, slice int64) (total, retries int64) {
	i, found := c.source(node, boot)
	if !found {
		return 0, 0
	}
	return c.sources[i].counts.Slice(slice)
}

func (s *source) compare(node string, boot uint64) int {
	if c := cmp.Compare(s.node, node); c != 0 {
		return c
	}
	return cmp.Compare(s.boot, boot)
}

// source is the index of a process, or where it would have to be.
func (c *Client) source(node string, boot uint64) (int, bool) {
	return slices.BinarySearchFunc(c.sources, node, func(s source, node string) int { return s.compare(node, boot) })
}

// newest is the last slice with a count.
func (s *source) newest() int64 {
	last := int64(-window.Slices)
	s.counts.Walk(func(slice, _, _ int64) { last = slice })
	return last
}

// due is when the last count has left the window.
func (c *Client) due() bucket.Instant {
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

// dropSources makes room for one more source: those whose window is over go,
// and at the bound the one that was silent the longest.
func (c *Client) dropSources(now int64) {
	for i := range c.sources {
		c.sources[i].counts.Drop(now)
	}
	c.sources = slices.DeleteFunc(c.sources, func(s source) bool { return s.counts.Len() == 0 })
	if len(c.sources) < maxSources {
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

// reslice counts in slices of another length. The counts so far keep their sums
// and, within a slice, their time.
func (c *Client) reslice(length time.Duration) {
	for i := range c.sources {
		var counts window.Counts
		c.sources[i].counts.Walk(func(slice, total, retries int64) {
			counts.Add(window.At(slice*int64(c.slice), length), total, retries)
		})
		c.sources[i].counts = counts
	}
	c.slice = length
}

// Process is one process of one node.
type Process struct {
	Node string
	// Boot is drawn at random when the process starts.
	Boot uint64
}

// Count is what was admitted: Total, and Retries among them.
type Count struct{ Total, Retries int64 }

// Count takes a process's cumulative count of a client in one slice. What is out
// of the window, and clients beyond the cap, do not count.
func (s *State) Count(from Process, name string, slice int64, count Count) {
	length := s.SliceOf(name)
	now := window.At(int64(s.Now), length)
	slice, ok := window.Place(now, slice)
	if !ok || slice < 0 || count.Total == 0 {
		return
	}
	c := s.clients.Find(name)
	if c == nil {
		if int64(s.clients.Len()) >= s.Caps.GetClients() {
			return
		}
		c = &Client{Name: name, slice: length}
		s.clients.Insert(c)
	}
	c = s.touchClient(c)
	i, found := c.source(from.Node, from.Boot)
	if !found {
		c.dropSources(now)
		i, _ = c.source(from.Node, from.Boot)
		c.sources = slices.Insert(c.sources, i, source{node: from.Node, boot: from.Boot})
	}
	counts := &c.sources[i].counts
	counts.Drop(now)
	counts.SetMax(slice, count.Total, count.Retries)
}

// SliceOf is the length of the slices in which a client is counted.
func (s *State) SliceOf(name string) time.Duration {
	if b := s.budgets.find(name); b != nil {
		return window.Length(time.Duration(b.GetWindow()))
	}
	return window.Length(defaultWindow)
}

// FindClient returns the counts of a client, nil where there are none.
func (s *State) FindClient(name string) *Client { return s.clients.Find(name) }

// AllClients walks the clients in no particular order.
func (s *State) AllClients() iter.Seq[*Client] { return s.clients.All() }

// ForgetSilent forgets clients whose last count has left the window, at most as
// many.
func (s *State) ForgetSilent(most int) {
	for range most {
		c, at := s.dueClients.Top()
		if at > int64(s.Now) {
			return
		}
		s.sum -= c.digest
		s.dueClients.Remove(c)
		s.clients.Remove(c)
	}
}

// resliceClients counts in slices of the length that the retry budgets ask for
// now.
func (s *State) resliceClients() {
	var changed []*Client
	// The order does not matter: each client is changed by itself.
	for c := range s.clients.All() {
		if s.SliceOf(c.Name) != c.slice {
			changed = append(changed, c)
		}
	}
	for _, c := range changed {
		s.touchClient(c).reslice(s.SliceOf(c.Name))
	}
}

func (s *State) touchClient(c *Client) *Client {
	if c.touched {
		return c
	}
	own := s.clients.Own(c)
	if own != c {
		s.dueClients.Renew(own)
	}
	own.touched = true
	s.sum -= own.digest
	s.touched.clients = append(s.touched.clients, own)
	return own
}

func (s *State) sealClient(c *Client) {
	if !c.touched {
		return
	}
	c.touched = false
	c.digest = c.sum()
	s.sum += c.digest
	s.dueClients.Set(c, int64(c.due()))
}
