// Package report tells the authority what a client admitted without it.
package report

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/authority"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/members"
	"github.com/quorlease/quorlease/client/session"
)

const (
	// reportMax is how many accounts one report has: the protocol's bound.
	reportMax = 64
	// reportTimeout bounds one report.
	reportTimeout = 2 * time.Second
	// reportPause is how long what is admitted gathers before it is reported, and
	// the first pause after a report that failed.
	reportPause    = 200 * time.Millisecond
	reportPauseMax = 10 * time.Second
	// reportSession is after how long without anything new the counts start over
	// under another id: well before the authority forgets them, a day after they
	// last grew, and would book them a second time. Not sooner, because what each id
	// has reported is remembered for as long.
	reportSession = time.Hour
)

// Reporter reports what a machine has admitted. It is safe for concurrent use.
type Reporter struct {
	machine *failopen.Machine
	members *members.Members
	client  string
	newID   func() string
	// id is the session id that is reported under. It changes when counts start
	// over.
	id    atomic.Pointer[string]
	owing chan struct{}
	tries Book
	// named are the books of others.
	named *shelf
}

// New returns the reporter of a client. Reports begin under the id that its
// sessions have; newID draws further ones.
func New(machine *failopen.Machine, m *members.Members, who session.Hello, newID func() string) *Reporter {
	r := &Reporter{machine: machine, members: m, client: who.Client, newID: newID, owing: make(chan struct{}, 1)}
	r.id.Store(&who.SessionID)
	r.tries.machine, r.tries.client, r.tries.owe = machine, who.Client, r.Owe
	r.named = newShelf(machine, r.Owe)
	return r
}

// Tries counts what the client does by permits, for the same reports.
func (r *Reporter) Tries() *Book { return &r.tries }

// TriesOf counts what is done by permits for somebody else, who is told of under his own
// name. Empty: the client itself.
func (r *Reporter) TriesOf(client string) *Book {
	if client == "" || client == r.client {
		return &r.tries
	}
	return r.named.of(client)
}

// ID is the session id that is reported under now.
func (r *Reporter) ID() string { return *r.id.Load() }

// Owe says that there may be something to report. It never blocks.
func (r *Reporter) Owe() {
	select {
	case r.owing <- struct{}{}:
	default:
	}
}

// Run reports what there is, whenever the authority answers, until ctx ends. What was
// admitted is cumulative: a report that is lost or repeated does no harm (T35). What was
// tried is a difference: it counts twice where only the answer was lost.
func (r *Reporter) Run(ctx context.Context) {
	quiet := time.NewTimer(reportSession)
	defer quiet.Stop()
	for {
		select {
		case <-r.owing:
		case <-quiet.C:
			if r.machine.StartOver() {
				id := r.newID()
				r.id.Store(&id)
			}
			quiet.Reset(reportSession)
			continue
		case <-ctx.Done():
			return
		}
		wait := reportPause
		// While the client is away the end of the incident wakes this loop again.
		for !r.machine.Away() && (len(r.machine.Pending(1)) > 0 || r.tries.owes() || r.named.owes()) {
			if !authority.Pause(ctx, wait/2+rand.N(wait)) {
				return
			}
			if r.own(ctx) && r.others(ctx, namedRound) {
				wait = reportPause
			} else {
				wait = min(2*wait, reportPauseMax)
			}
		}
		quiet.Reset(reportSession)
	}
}

// Once reports what waits, and not what comes while it does: that gathers. It is false
// where something was not taken.
func (r *Reporter) Once(ctx context.Context) bool { return r.own(ctx) && r.others(ctx, namedMax) }

// others reports what up to most others have done by permits: a report for each name,
// which costs the node that hears it no entry.
func (r *Reporter) others(ctx context.Context, most int) bool {
	books := r.named.next(most)
	for i, b := range books {
		tried := b.take()
		if tried == nil {
			continue
		}
		if err := r.tell(ctx, b, nil, tried); err != nil && status.Code(err) != codes.InvalidArgument {
			r.named.queue(books[i+1:]...)
			return false
		}
	}
	return true
}

// own reports what the client has admitted, and done by permits, for itself.
func (r *Reporter) own(ctx context.Context) bool {
	for tried := r.tries.take(); ; tried = nil {
		accounts := r.machine.Pending(reportMax)
		if len(accounts) == 0 && tried == nil {
			return true
		}
		if err := r.tell(ctx, &r.tries, accounts, tried); err != nil {
			return false
		}
		r.machine.Booked(accounts)
		if len(accounts) < reportMax {
			return true
		}
	}
}

// tell sends one report, under a book's name. What was tried goes back into the book
// where it was not taken.
func (r *Reporter) tell(
	ctx context.Context, b *Book, accounts []failopen.Account, tried *quorleasev1.Attempts,
) error {
	err := r.send(ctx, &quorleasev1.ReportRequest{Client: b.client, SessionId: r.ID(), Attempts: tried}, accounts)
	if err != nil && tried != nil && status.Code(err) != codes.InvalidArgument {
		// An authority that does not understand it never will.
		b.putBack(tried)
	}
	return err
}

func (r *Reporter) send(
	ctx context.Context, request *quorleasev1.ReportRequest, accounts []failopen.Account,
) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	s, node, err := r.members.Session(ctx)
	if err != nil {
		return err
	}
	for _, a := range accounts {
		request.Admitted = append(request.Admitted, &quorleasev1.Admitted{
			Limit: a.Limit, Key: a.Key, Dimension: a.Dimension, Class: a.Class, Tokens: a.Tokens,
		})
	}
	_, err = quorleasev1.NewAdmissionClient(s.Conn()).Report(ctx, request)
	r.members.Failed(node, err)
	return err
}
