package alarm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/cluster/events"
)

// nodes are three that see the same, in a bubble's time, and one receiver.
type nodes struct {
	mu     sync.Mutex
	leader int // -1: nobody
	dead   [3]bool
	away   bool
	got    []alert.Alert

	rings  [3]*events.Ring
	alarms [3]*Alarm
}

// nobody leads.
const nobody = -1

func startNodes(t *testing.T, leader int) *nodes {
	t.Helper()
	n := &nodes{leader: leader}
	for i := range n.alarms {
		n.rings[i] = events.New(0, nil)
		everything := uint64(0)
		subscription, err := n.rings[i].Subscribe(&everything)
		if err != nil {
			t.Fatal(err)
		}
		sinks := []alert.Sink{receiving{n, i}}
		leads := func() (here, elsewhere bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.leader == i, n.leader != i && n.leader != nobody
		}
		c := Config{Node: fmt.Sprint("n", i+1), Logger: hclog.NewNullLogger(), Leads: leads}
		n.alarms[i] = start(c, subscription, sinks, sinks)
	}
	return n
}

// receiving is the receiver, as one node reaches it.
type receiving struct {
	n    *nodes
	node int
}

func (r receiving) Send(_ context.Context, a alert.Alert) error {
	r.n.mu.Lock()
	defer r.n.mu.Unlock()
	if r.n.away || r.n.dead[r.node] {
		return errors.New("nobody is there")
	}
	r.n.got = append(r.n.got, a)
	return nil
}

// set changes how things stand.
func (n *nodes) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (n *nodes) lead(leader int) { n.set(func() { n.leader = leader }) }

// kill ends a node that tells nobody of what it had begun.
func (n *nodes) kill(which int) { n.set(func() { n.dead[which] = true }) }

// see lets all nodes that live see an event, not quite at once.
func (n *nodes) see(e events.Event) {
	for i, ring := range n.rings {
		if !n.dead[i] {
			ring.Publish(e)
		}
		pass(30 * time.Millisecond)
	}
}

func pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// told is what the receiver got: who began or ended, and which of the ids it is.
func (n *nodes) told() string {
	var lines, ids []string
	for _, a := range n.got {
		if !slices.Contains(ids, a.ID) {
			ids = append(ids, a.ID)
		}
		lines = append(lines, fmt.Sprintf("%s %s %d", a.Name, a.Status(), slices.Index(ids, a.ID)+1))
	}
	return strings.Join(lines, ", ")
}

// once is one notification and one resolution.
const once = "cluster firing 1, cluster resolved 1"

// telling is what happens, and what the receiver is told then.
type telling struct {
	name string
	run  func(*nodes)
	want string
}

var (
	begin = storms(events.ClientOverBudget, "batch-scorer", 3)
	end   = calm(events.ClientOverBudget, "batch-scorer")
)

// leaders are what happens while each of them lives.
func leaders() []telling {
	return []telling{
		{"one_leader", func(n *nodes) {
			n.see(begin)
			pass(time.Minute)
			n.see(end)
		}, once},
		{"a_spend_cap", func(n *nodes) {
			n.see(capped("a"))
			n.see(cleared("a"))
		}, once},
		{"what_one_node_alone_sees", func(n *nodes) {
			n.see(lost)
			n.see(restored)
		}, "n1 firing 1, n2 firing 2, n3 firing 3, n1 resolved 1, n2 resolved 2, n3 resolved 3"},
		{"another_leads_and_then_the_first_again", func(n *nodes) {
			n.see(begin)
			pass(time.Minute)
			n.lead(1)
			pass(time.Minute)
			n.lead(0)
			pass(time.Minute)
			n.lead(2)
			n.see(end)
		}, once},
		{"one_that_is_long_over_is_not_told_again", func(n *nodes) {
			n.see(begin)
			n.see(end)
			pass(time.Minute)
			n.lead(1)
		}, once},
		// The first one still owes the beginning, and both of them the end, in whatever
		// order they try again.
		{"the_receiver_is_away_when_another_leads", func(n *nodes) {
			n.set(func() { n.away = true })
			n.see(begin)
			pass(time.Minute)
			n.lead(1)
			pass(time.Minute)
			n.see(end)
			n.set(func() { n.away = false })
			pass(5 * time.Minute)
			n.set(func() {
				slices.SortFunc(n.got, func(a, b alert.Alert) int { return strings.Compare(a.Status(), b.Status()) })
			})
		}, "cluster firing 1, cluster resolved 1, cluster resolved 1"},
	}
}

// losses are what happens when one dies.
func losses() []telling {
	return []telling{
		{"the_leader_dies_in_the_middle", func(n *nodes) {
			n.see(begin)
			pass(time.Minute)
			n.kill(0)
			pass(time.Second)
			n.lead(nobody)
			pass(2 * time.Second)
			n.lead(2)
			pass(time.Minute)
			n.see(end)
		}, once},
		{"the_leader_dies_before_it_tells", func(n *nodes) {
			n.set(func() { n.away = true })
			n.see(begin)
			n.kill(0)
			n.lead(1)
			n.set(func() { n.away = false })
			pass(time.Minute)
			n.see(end)
		}, once},
		// It may have told, for all that the next one knows.
		{"the_leader_dies_when_it_has_just_told", func(n *nodes) {
			n.see(begin)
			n.kill(0)
			n.lead(1)
			pass(time.Minute)
			n.see(end)
		}, "cluster firing 1, cluster firing 1, cluster resolved 1"},
		{"it_ends_while_nobody_leads", func(n *nodes) {
			n.see(begin)
			pass(time.Minute)
			n.kill(0)
			n.lead(nobody)
			pass(10 * time.Second)
			n.see(end)
			pass(5 * time.Minute)
			n.lead(1)
		}, once},
		{"it_begins_and_ends_while_nobody_leads", func(n *nodes) {
			n.lead(nobody)
			n.see(begin)
			pass(time.Minute)
			n.see(end)
			pass(5 * time.Minute)
			n.lead(1)
		}, once},
	}
}

// TestOneNodeTells: of what all nodes see, a receiver hears once that it begins and once
// that it is over, whoever leads meanwhile.
func TestOneNodeTells(t *testing.T) {
	t.Parallel()
	t.Run("S1-48_S3-27_while_leaders_live", func(t *testing.T) { tell(t, leaders()) })
	t.Run("S1-48_S3-27_when_one_dies", func(t *testing.T) { tell(t, losses()) })
}

func tell(t *testing.T, rows []telling) {
	t.Helper()
	t.Parallel()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := startNodes(t, 0)
				pass(time.Minute)
				row.run(n)
				pass(5 * time.Minute)
				n.set(func() {
					if got := n.told(); got != row.want {
						t.Errorf("told %s, want %s", got, row.want)
					}
				})
				for i := range n.alarms {
					n.rings[i].Close()
					n.alarms[i].Close()
				}
			})
		})
	}
}
