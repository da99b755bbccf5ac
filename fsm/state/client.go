package state

import (
	"iter"
	"time"

	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/tally"
	"github.com/quorlease/quorlease/fsm/window"
)

// defaultWindow counts clients that no retry budget is for.
const defaultWindow = 5 * time.Minute

// Client is what the nodes have reported of one client.
type Client struct {
	Name       string
	generation uint32
	place      int32
	touched    bool
	// Tally is changed by Count only.
	Tally  tally.Tally
	digest uint64
}

// Key, Generation and Clone are for the table, Place and Before for the queue.
func (c *Client) Key() string           { return c.Name }
func (c *Client) Generation() *uint32   { return &c.generation }
func (c *Client) Place() *int32         { return &c.place }
func (c *Client) Before(o *Client) bool { return c.Name < o.Name }

func (c *Client) Clone() *Client {
	fresh := *c
	fresh.Tally = c.Tally.Clone()
	return &fresh
}

func (c *Client) sum() uint64 {
	sum := digest.New(tagClient)
	sum.Text(c.Name)
	c.Tally.Digest(&sum)
	return sum.Value()
}

// Count takes a process's cumulative report of a client in one slice. What is out
// of the window, and clients beyond the cap, do not count.
func (s *State) Count(from tally.Process, name string, report tally.Report) {
	length := s.SliceOf(name)
	if !report.Counts(s.Now, length) {
		return
	}
	c := s.clients.Find(name)
	if c == nil {
		if int64(s.clients.Len()) >= s.Caps.GetClients() {
			return
		}
		c = &Client{Name: name, Tally: tally.New(length)}
		s.clients.Insert(c)
	}
	s.touchClient(c).Tally.Add(s.Now, from, report)
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

// ForgetSilent forgets what has left the window, and clients of which nothing is
// left in their hour either, at most as many.
func (s *State) ForgetSilent(most int) {
	for range most {
		c, at := s.dueClients.Top()
		if at > int64(s.Now) {
			return
		}
		if !c.Tally.Over(s.Now) {
			own := s.touchClient(c)
			own.Tally.Drop(s.Now)
			s.dueClients.Set(own, int64(own.Tally.Due()))
			continue
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
		if s.SliceOf(c.Name) != c.Tally.Length() {
			changed = append(changed, c)
		}
	}
	for _, c := range changed {
		s.touchClient(c).Tally.Reslice(s.Now, s.SliceOf(c.Name))
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
	s.dueClients.Set(c, int64(c.Tally.Due()))
}
