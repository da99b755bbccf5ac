// Package refresh keeps the shares of limits that the authority promises a client.
package refresh

import (
	"context"
	"math/rand/v2"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/authority"
	"github.com/quorlease/quorlease/client/clock"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/members"
)

const (
	// every is how often a client refreshes, soon how often while nothing is promised
	// yet, and at once how long it waits with saying that it knows of a new promise.
	every  = time.Second
	soon   = 250 * time.Millisecond
	atOnce = 10 * time.Millisecond
	// soonMost is how often in a row it refreshes soon.
	soonMost = 20
	// within bounds one refresh.
	within = time.Second
	// heldMax is how many limits one refresh has: the protocol's bound.
	heldMax = 64
	// sleptLeast is the shortest suspension that counts.
	sleptLeast = 10 * time.Millisecond
)

// Refresher refreshes what a machine holds. It is safe for concurrent use.
type Refresher struct {
	machine *failopen.Machine
	members *members.Members
	clock   *clock.Clock
	began   time.Time
	// slept is for how long the machine was suspended, as far as it was noticed.
	slept time.Duration
	// vain is how often in a row nothing was promised of some limit.
	vain   int
	learnt chan struct{}
}

// New is the refresher of a client.
func New(machine *failopen.Machine, m *members.Members) *Refresher {
	return &Refresher{
		machine: machine, members: m, clock: clock.New(), began: time.Now(), learnt: make(chan struct{}, 1),
	}
}

// Learnt says that there may be something to hold. It never blocks.
func (r *Refresher) Learnt() {
	select {
	case r.learnt <- struct{}{}:
	default:
	}
}

// Run refreshes until ctx ends, once there is something to hold, also while the client
// decides by itself: whoever answers may know of it.
func (r *Refresher) Run(ctx context.Context) {
	for {
		if len(r.machine.Held()) == 0 {
			select {
			case <-r.learnt:
			case <-ctx.Done():
				return
			}
			continue
		}
		wait := r.once(ctx)
		// A quarter more or less, so that many clients do not refresh in step.
		if !authority.Pause(ctx, wait*3/4+rand.N(wait/2)) {
			return
		}
		r.wake()
	}
}

// wake ends promises sooner where the machine was suspended meanwhile.
func (r *Refresher) wake() {
	slept := r.clock.Now() - time.Since(r.began)
	if slept-r.slept >= sleptLeast {
		r.machine.Overslept(slept - r.slept)
		r.slept = slept
	}
}

// once refreshes, and returns after how long to do so again.
func (r *Refresher) once(ctx context.Context) time.Duration {
	wait, vain := every, false
	held := r.machine.Held()
	for len(held) > 0 {
		n := min(len(held), heldMax)
		part := make([]*quorleasev1.HeldShare, n)
		for i, p := range held[:n] {
			part[i] = &quorleasev1.HeldShare{Limit: p.Limit, Version: p.Version}
		}
		held = held[n:]
		sent := time.Now()
		promises := promisesOf(r.ask(ctx, part))
		if r.machine.Promised(sent, promises) {
			wait = min(wait, atOnce)
		}
		for _, p := range promises {
			vain = vain || p.Version == 0
		}
	}
	if !vain {
		r.vain = 0
		return wait
	}
	// A limit that is not shared any more has nothing to wait for.
	if r.vain++; r.vain <= soonMost {
		wait = min(wait, soon)
	}
	return wait
}

// Leave says that the client uses no share any more, so that others may have it at once.
// It is the last thing that is done with a machine.
func (r *Refresher) Leave(ctx context.Context) {
	held := r.machine.Forgo()
	for len(held) > 0 && ctx.Err() == nil {
		n := min(len(held), heldMax)
		part := make([]*quorleasev1.HeldShare, n)
		for i, p := range held[:n] {
			part[i] = &quorleasev1.HeldShare{Limit: p.Limit, Left: true}
		}
		held = held[n:]
		r.ask(ctx, part)
	}
}

// ask asks one node, nil where it does not answer: a promise is kept until it ends.
func (r *Refresher) ask(ctx context.Context, held []*quorleasev1.HeldShare) *quorleasev1.RefreshResponse {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s, _, err := r.members.Session(ctx)
	if err != nil {
		return nil
	}
	answer, err := s.Do(ctx, &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Refresh{
		Refresh: &quorleasev1.RefreshRequest{Held: held},
	}})
	if err != nil {
		return nil
	}
	return answer.GetRefresh()
}

func promisesOf(r *quorleasev1.RefreshResponse) []failopen.Promise {
	list := make([]failopen.Promise, 0, len(r.GetShares()))
	for _, f := range r.GetShares() {
		p := failopen.Promise{Limit: f.GetLimit()}
		if f.SharePpm != nil {
			p.Version, p.SharePPM = f.GetVersion(), f.GetSharePpm()
			p.ValidFor, p.Hold = f.GetValidFor().AsDuration(), f.GetHold().AsDuration()
		}
		list = append(list, p)
	}
	return list
}
