// Package authority asks an authority until there is an answer, and notices when
// nobody gives any.
//
// Whatever is asked is judged here: an answer, another node, a pause, or nobody.
// Each of these says something about the authority, which a failopen.Machine takes
// in; where that makes an incident, or ends one, somebody is told. What the client
// decides by itself meanwhile is not here.
package authority

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/incident"
	"github.com/quorlease/quorlease/client/members"
	"github.com/quorlease/quorlease/client/patience"
)

// Config says whom to ask and who hears of it when nobody answers. All of it is
// needed.
type Config struct {
	// Members is where the nodes are. Its Changed is set here.
	Members members.Config
	// Machine takes in what every call says about the authority.
	Machine *failopen.Machine
	// Notify gets the alert of an incident, and the end of it. It must not block.
	Notify func(alert.Alert)
	// Over is called when an incident is over. It must not block.
	Over func()
}

// Authority is the nodes as a client sees them. It is safe for concurrent use.
// Make one with New.
type Authority struct {
	config  Config
	machine *failopen.Machine
	members *members.Members
	// salt tells the turns of clients apart.
	salt uint64

	// learnt is set once the authority has said what to do without it.
	learnt atomic.Bool
	// patience is how long callers wait: an answer that takes longer than the most
	// patient one would wait is none (see probe).
	patience patience.Longest
	// hedges pays for asking another node before the first one has had its part of the
	// deadline.
	hedges *patience.Hedges
	// departures pays for leaving a node that answers nobody.
	departures *patience.Hedges
	// alarm says when somebody is told of an incident; its lock orders what the
	// machine says.
	alarm struct {
		sync.Mutex
		incident.Alarm
	}
	// abandoned are ids of leases to be given back.
	abandoned chan string
	// doubt wakes the prober; it holds one wish.
	doubt   chan struct{}
	stopped atomic.Bool
}

// New begins to connect in the background. The error names what is wrong with the
// members' configuration.
func New(config Config) (*Authority, error) {
	a := &Authority{
		config: config, machine: config.Machine, salt: rand.Uint64(),
		hedges: patience.NewHedges(), departures: patience.NewHedges(),
		doubt: make(chan struct{}, 1), abandoned: make(chan string, abandonedMax),
	}
	// An idle client, too, is to find out that the authority is lost.
	config.Members.Changed = func(s members.State) {
		if s.Reach == members.Unreachable || s.Reach == members.Leaderless {
			wake(a.doubt)
		}
	}
	var err error
	if a.members, err = members.New(config.Members); err != nil {
		return nil, err
	}
	return a, nil
}

// Members are the nodes.
func (a *Authority) Members() *members.Members { return a.members }

// Run probes while there is doubt, and gives back what was abandoned, until ctx
// ends.
func (a *Authority) Run(ctx context.Context) {
	var giving sync.WaitGroup
	giving.Go(func() { a.giveBack(ctx) })
	a.probe(ctx)
	giving.Wait()
}

// Stop makes every question fail with ErrClosed.
func (a *Authority) Stop() { a.stopped.Store(true) }

// Stopped says whether Stop was called.
func (a *Authority) Stopped() bool { return a.stopped.Load() }

// Close ends every session. Call Stop and end Run before. It is idempotent.
func (a *Authority) Close() error { return a.members.Close() }

// Learnt notes that the authority has said what to do without it.
func (a *Authority) Learnt() { a.learnt.Store(true) }

// Note remembers how long a caller waits for an answer, beside what it waits in a
// queue. One that is in a hurry says nothing about the authority.
func (a *Authority) Note(now time.Time, budget time.Duration) {
	if budget >= fairDeadline {
		a.patience.Note(now, budget)
	}
}

// wake leaves a wish in a channel that holds one.
func wake(wish chan struct{}) {
	select {
	case wish <- struct{}{}:
	default:
	}
}

// Pause waits d, or until ctx ends; false then.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
