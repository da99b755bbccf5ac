package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/membership"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/progress"
)

// verbs and causes are what travels between nodes.
var verbs = map[peerv1.ChangeRequest_Verb]membership.Verb{
	peerv1.ChangeRequest_VERB_ADD:      membership.Add,
	peerv1.ChangeRequest_VERB_REMOVE:   membership.Remove,
	peerv1.ChangeRequest_VERB_PROMOTE:  membership.Promote,
	peerv1.ChangeRequest_VERB_DEMOTE:   membership.Demote,
	peerv1.ChangeRequest_VERB_TRANSFER: membership.Transfer,
}

var causes = []struct {
	cause peerv1.ChangeResponse_Cause
	err   error
}{
	{peerv1.ChangeResponse_CAUSE_UNKNOWN, membership.ErrUnknown},
	{peerv1.ChangeResponse_CAUSE_NOT_READY, membership.ErrNotReady},
	{peerv1.ChangeResponse_CAUSE_BUSY, membership.ErrBusy},
	{peerv1.ChangeResponse_CAUSE_REFUSED, membership.ErrRefused},
}

func reasonOf(err, cause error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), cause.Error()), ": ")
}

// errorOf is what a response says went wrong, if anything did.
func errorOf(r *peerv1.ChangeResponse) error {
	if r.GetFailure() != nil {
		return outcome.ErrorOf(r.GetFailure())
	}
	if r.GetCause() == peerv1.ChangeResponse_CAUSE_UNSPECIFIED {
		return nil
	}
	for _, row := range causes {
		if row.cause == r.GetCause() {
			if r.GetReason() == "" {
				return row.err
			}
			return fmt.Errorf("%w: %s", row.err, r.GetReason())
		}
	}
	return fmt.Errorf("%w: peer: cause %d: %s", outcome.ErrUnknown, r.GetCause(), r.GetReason())
}

// Result is what came of a change.
type Result struct {
	// Changed is false where it was so before.
	Changed bool
	// Leader is the name of the node that leads afterwards, as far as is known.
	Leader string
}

// againAfter is the pause before a leader is asked again.
const againAfter = 100 * time.Millisecond

// Change makes a change, whichever node leads, and waits until it has committed. Every
// change may be repeated, so it asks again where an answer got lost, until ctx ends.
// The error wraps one of package membership's where nothing is to be changed, else one
// of package outcome's.
func (c *Changer) Change(ctx context.Context, verb membership.Verb, name, address string) (Result, error) {
	request := &peerv1.ChangeRequest{Name: name, Peer: address}
	for wire, v := range verbs {
		if v == verb {
			request.Verb = wire
		}
	}
	before, known := c.leader(), c.knows(name)
	lost, changed := false, false
	for {
		response, err := c.once(ctx, request)
		changed = changed || err == nil && response.GetChanged()
		switch {
		case err == nil && !response.GetMoved():
			return c.done(ctx, verb, before, changed), nil
		case err == nil:
		case lost && verb == membership.Remove && known && errors.Is(err, membership.ErrUnknown):
			// It was the attempt whose answer got lost.
			return c.done(ctx, verb, before, true), nil
		case lost && errors.Is(err, membership.ErrBusy):
			// It may be that attempt that is under way.
		case decided(err), !lost && errors.Is(err, outcome.ErrNoQuorum):
			return Result{}, err
		default:
			lost = lost || outcome.MayHaveHappened(err)
		}
		if lost && verb == membership.Transfer && name == "" && c.handed(before) {
			// Once more, and the new leader would hand over too.
			return c.done(ctx, verb, before, true), nil
		}
		if !progress.Pause(ctx, againAfter) {
			return Result{}, c.gaveUp(lost, err)
		}
	}
}

// knows reports whether somebody called name is a member, as far as this node knows.
func (c *Changer) knows(name string) bool {
	return slices.ContainsFunc(c.config.Roster.Applied(), func(m Member) bool { return m.Name == name })
}

// handed reports whether another than before leads.
func (c *Changer) handed(before string) bool {
	now := c.leader()
	return now != "" && now != before
}

// decided reports whether a leader has looked at it.
func decided(err error) bool {
	for _, row := range causes {
		if errors.Is(err, row.err) {
			return true
		}
	}
	return errors.Is(err, outcome.ErrClosed)
}

// once asks the leader of now.
func (c *Changer) once(ctx context.Context, request *peerv1.ChangeRequest) (*peerv1.ChangeResponse, error) {
	if c.config.Leads() {
		response := c.Here(ctx, request)
		return response, errorOf(response)
	}
	_, address := c.config.Leader()
	if address == "" {
		return nil, c.config.Leaderless()
	}
	client, err := c.config.Client(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.whileLeads(ctx, address)
	defer cancel()
	response, err := client.Change(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("%w: ask the leader at %s: %w", outcome.ErrUnknown, address, err)
	}
	return response, errorOf(response)
}

// whileLeads is ctx until another leads than who is asked, and some time for the answer:
// a leader that hangs gives none, and the next can be asked.
func (c *Changer) whileLeads(ctx context.Context, address string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	var joined sync.WaitGroup
	joined.Go(func() {
		for deposed := 0; deposed < int(settleMax/againAfter); {
			if !progress.Pause(ctx, againAfter) {
				return
			}
			_, now := c.config.Leader()
			if deposed++; !c.config.Leads() && (now == "" || now == address) {
				deposed = 0
			}
		}
		cancel()
	})
	return ctx, func() {
		cancel()
		joined.Wait()
	}
}

func (c *Changer) gaveUp(lost bool, err error) error {
	switch {
	case lost:
		return fmt.Errorf("%w: %w", outcome.ErrDeadlineProposed, err)
	case err == nil || errors.Is(err, outcome.ErrNotLeader):
		return fmt.Errorf("%w: %w", outcome.ErrDeadlineWaiting, c.config.Leaderless())
	}
	return err
}

// settleMax is how long to wait for news of a new leader.
const settleMax = time.Second

// done is the result. Of a leadership that was given away it waits, a moment at most,
// until it is known who has it.
func (c *Changer) done(ctx context.Context, verb membership.Verb, before string, changed bool) Result {
	ctx, cancel := context.WithTimeout(ctx, settleMax)
	defer cancel()
	for verb == membership.Transfer && changed {
		if c.handed(before) || !progress.Pause(ctx, againAfter) {
			break
		}
	}
	return Result{Changed: changed, Leader: identity.NameOf(c.leader())}
}

// leader is the Raft id of whoever leads as far as this node knows.
func (c *Changer) leader() string {
	if c.config.Leads() {
		return c.config.Self
	}
	id, _ := c.config.Leader()
	return id
}
