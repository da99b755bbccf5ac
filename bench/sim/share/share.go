// Package share is clients of a simulated world that share a limit while nobody answers
// them: the real machine of client/failopen and the real book of fsm/shares, between which
// refreshes and answers are lost, late and repeated.
//
// They come, say good-bye, fall silent, are cut off and sleep, and at no time may all of them
// together use more than all of the limit.
package share

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/bench/sim/tally"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/fsm/shares"
)

const (
	// every, soon and atOnce are when a client refreshes, as client/refresh has it, and
	// within bounds one refresh.
	every  = time.Second
	soon   = 250 * time.Millisecond
	atOnce = 10 * time.Millisecond
	within = time.Second
	// askFor is how long a request waits.
	askFor = 400 * time.Millisecond
	// static is what a client is configured with, for who has no authority.
	static = 250_000
)

// Config is what clients need of their world.
type Config struct {
	Stage   *stage.Stage
	Network *stage.Network
	Judge   *judge.Judge
	Stats   *tally.Stats
	Limit   *logv1.Limit
	// Busy says that anything is asked for, Active that things go wrong.
	Busy, Active func() bool
	// Nodes are the machines that clients are cut off from.
	Nodes func() []*stage.Host
}

// Call sends an operation to some node and calls done once: with nil where nothing came.
type Call func(op *logv1.Operation, timeout time.Duration, done func(*logv1.Result, failopen.Signal))

// Crowd is all clients of the limit.
type Crowd struct {
	Config
	clients []*client
}

// client is a place for one client after another.
type client struct {
	crowd  *Crowd
	host   *stage.Host
	call   Call
	serial int
	life   *life
}

// life is one process, which has one session.
type life struct {
	*client
	name    string
	session []byte
	machine *failopen.Machine
	// reporting: a report is under way.
	reporting bool
}

// New is a crowd without clients.
func New(c Config) *Crowd { return &Crowd{Config: c} }

// Add makes a place for clients.
func (c *Crowd) Add(host *stage.Host, call Call) {
	c.clients = append(c.clients, &client{crowd: c, host: host, call: call})
}

// Begin has the clients come after a while.
func (c *Crowd) Begin(after time.Duration) {
	for _, one := range c.clients {
		c.Stage.At(nil, c.Stage.Between(after, 4*after), one.come)
		c.Stage.At(nil, c.Stage.Between(4*after, 8*after), one.happen)
	}
}

// come begins a process that knows of nothing.
func (c *client) come() {
	if c.life != nil {
		return
	}
	c.serial++
	share := int64(static)
	l := &life{client: c, name: fmt.Sprint(c.host.Name, ".", c.serial), session: make([]byte, 16)}
	copy(l.session, "share-"+l.name)
	var err error
	l.machine, err = failopen.New(failopen.Config{Booked: true, Fallback: failopen.Fallback{SharePPM: &share}})
	if err == nil {
		d := c.crowd.Limit.GetDimensions()[0]
		err = l.machine.Learn(c.now(), failopen.Lesson{Client: l.name, Revision: 1, Limits: []failopen.Fallback{{
			Limit: rules.Crowd, Mode: failopen.Share, SharePPM: &share, Dimensions: []failopen.Dimension{{
				Name: d.GetName(), Amount: d.GetAmount(), Interval: time.Duration(d.GetInterval()), Burst: d.GetBurst(),
			}},
		}}})
	}
	if err != nil {
		c.crowd.Judge.Complain("model", "client %s: %v", l.name, err)
		return
	}
	c.life = l
	c.crowd.Stats.Joined++
	c.crowd.Stage.Trace("%s comes", l.name)
	l.refresh()
	l.act()
}

func (c *client) now() time.Time { return time.Unix(0, 0).Add(c.host.Boot()) }

// happen is what befalls a client, now and then.
func (c *client) happen() {
	s := c.crowd.Stage
	s.At(nil, s.Between(time.Second, 12*time.Second), c.happen)
	if !c.crowd.Active() {
		return
	}
	switch l := c.life; {
	case l == nil:
		c.come()
	case s.Chance(4):
		s.Trace("%s says good-bye", l.name)
		l.machine.Forgo()
		l.end()
		l.tell(true, func(*logv1.Result) {})
	case s.Chance(4):
		s.Trace("%s falls silent", l.name)
		l.end()
	case s.Chance(4):
		c.host.Suspend(s.Between(time.Second, 8*time.Second), s.Chance(2))
	default:
		s.Trace("%s is cut off", l.name)
		c.crowd.Network.Cut([]*stage.Host{c.host}, c.crowd.Nodes(), s.Between(2*time.Second, 20*time.Second))
	}
}

// end is the end of a process. What it has not reported nobody does.
func (l *life) end() {
	l.life = nil
	l.crowd.Stats.Went++
	l.crowd.Judge.Vanished(l.name)
}

func (l *life) there() bool { return l.life == l }

// held is what it holds of the limit.
func (l *life) held() failopen.Promise { return l.machine.Held()[0] }

// tell says what it holds, or that it holds nothing any more.
func (l *life) tell(left bool, done func(*logv1.Result)) {
	held := &logv1.HeldShare{Limit: rules.Crowd, Session: l.session, Left: left}
	if !left {
		held.Version = l.held().Version
	}
	op := &logv1.ReportShares{Held: []*logv1.HeldShare{held}}
	l.call(&logv1.Operation{Kind: &logv1.Operation_ReportShares{ReportShares: op}}, within,
		func(r *logv1.Result, _ failopen.Signal) { done(r) })
}

// refresh is what client/refresh does.
func (l *life) refresh() {
	if !l.there() {
		return
	}
	sent := l.now()
	l.tell(false, func(r *logv1.Result) {
		if !l.there() {
			return
		}
		wait := every
		if all := r.GetShares().GetPromises(); len(all) == 0 || all[0].GetVersion() == 0 {
			wait = soon
		} else if l.machine.Promised(sent, []failopen.Promise{{
			Limit: rules.Crowd, Version: all[0].GetVersion(), SharePPM: all[0].GetPpm(),
			ValidFor: shares.ValidFor, Hold: shares.Hold,
		}}) {
			wait = atOnce
			l.crowd.Stats.Promised++
			l.crowd.sum()
		}
		l.crowd.Stage.At(l.host, wait*3/4+l.crowd.Stage.Between(0, wait/2), l.refresh)
	})
}

// sum checks that all together hold no more than there is (T33, T50, T52).
func (c *Crowd) sum() {
	all, text := int64(0), ""
	for _, one := range c.clients {
		if l := one.life; l != nil {
			all += l.held().SharePPM
			text += fmt.Sprintf(" %s %d", l.name, l.held().SharePPM)
		}
	}
	if all > shares.Whole {
		c.Judge.Complain("shares", "clients may use %d millionths together:%s", all, text)
	}
}
