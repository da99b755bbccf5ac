// Package feedback is what providers' answers do to the keys that the answered
// requests were charged to: they pause them, slow them down, block them, or lower
// levels that are too high. All gateways share what one of them was told.
//
// A report says what a provider said, not what is to be done. What is done
// follows from the limit: over which time it reopens, or by how much and in which
// steps its rate adapts. Two thousand gateways report one event two thousand times:
// within an interval only the first one lowers anything.
//
// The package is pure, and works on a state that it is given.
package feedback

import (
	"cmp"
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/escrow"
	"github.com/quorlease/quorlease/fsm/pace"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/state"
)

// Book works on the controls of a state. One goroutine calls it, that which applies
// entries.
type Book struct {
	state   *state.State
	effects *effect.List
}

// New is the book of a state; what happens to keys is added to effects.
func New(s *state.State, effects *effect.List) *Book { return &Book{s, effects} }

// Apply takes over what a provider said. All signals are checked before any of them
// is. The error is a *refuse.Refused.
func (b *Book) Apply(op *logv1.Feedback) (*logv1.Result, error) {
	limits, err := b.check(op)
	if err != nil {
		return nil, err
	}
	answer := &logv1.FeedbackResult{Signals: make([]*logv1.Controlled, len(limits))}
	for i, s := range op.GetSignals() {
		answer.Signals[i] = b.apply(limits[i], op, s)
	}
	return &logv1.Result{Kind: &logv1.Result_Feedback{Feedback: answer}}, nil
}

// apply takes over one signal. lim is nil where it speaks of what there is not.
func (b *Book) apply(lim *state.Limit, op *logv1.Feedback, s *logv1.Signal) *logv1.Controlled {
	if lim == nil {
		return &logv1.Controlled{Gone: true}
	}
	k := b.state.FindKey(lim.ID, s.GetKey())
	if k == nil {
		// Who names no client is known by its credential, as in an acquire.
		maker := cmp.Or(op.GetClient(), op.GetOwner())
		if b.state.NoRoom(lim) != "" || lim.TooMany(maker, 1) {
			return &logv1.Controlled{Gone: true}
		}
		k = b.state.AddKeyFor(lim, s.GetKey(), maker)
	}
	k = b.live(lim, k)
	now := b.state.Now
	was := record.Control{
		ID:   record.ControlID{Limit: lim.ID, Key: k.Name},
		From: now, Pace: pace.Pace{Start: pace.Whole},
	}
	old := b.state.ControlOf(k)
	fresh := old == nil
	if !fresh {
		was = *old
	}
	next, empty := decide(lim.Limit, was, s, now)
	b.lower(lim, k, s, empty)
	if next != was {
		if !was.Blocked {
			next.Reason, next.Client = s.GetReason(), op.GetClient()
		}
		b.state.SetControl(k, next)
		if escrow.Void(b.state, lim, k.Name) {
			b.effects.Add(effect.Effect{Kind: effect.EscrowVoided, Limit: lim.Name, Key: k.Name})
		}
		b.tell(lim, fresh, &was, &next)
	}
	return &logv1.Controlled{
		Paused: max(0, int64(next.Pace.Opens-now)), Blocked: next.Blocked, Pace: next.Pace.At(now),
	}
}

// live brings a key up to now, by the pace that it has had.
func (b *Book) live(lim *state.Limit, k *state.Key) *state.Key {
	k = b.state.ChangeKey(lim, k)
	v := lim.Now().For(k.Name)
	for i := range v.Dimensions {
		k.Held(i).Bucket.Advance(v.Dimensions[i].Shape, b.state.Now)
	}
	return k
}

// lower takes out of the key's buckets what the provider says is not there. A
// level is never raised: others may have spent what one was told is left.
func (b *Book) lower(lim *state.Limit, k *state.Key, s *logv1.Signal, empty bool) {
	if lim.Limit.GetKind() == logv1.Kind_KIND_CONCURRENCY {
		return
	}
	// What a window has left does not depend on a rate: only what was observed does
	// it any harm.
	empty = empty && lim.Limit.GetKind() == logv1.Kind_KIND_RATE
	v := lim.Now().For(k.Name)
	for i := range v.Dimensions {
		d := &v.Dimensions[i]
		if !d.Live() {
			continue
		}
		left, known := observed(s, d.Spec.GetName())
		held := &k.Held(i).Bucket
		switch {
		case known:
			held.Lower(d.Shape, max(0, held.Level(d.Shape)-left))
		case empty:
			// One more than whole tokens, for the fraction.
			held.Lower(d.Shape, held.Level(d.Shape)+1)
		}
	}
}

func observed(s *logv1.Signal, dimension string) (left int64, known bool) {
	for _, o := range s.GetObserved() {
		if o.GetDimension() == dimension {
			return o.GetRemaining(), true
		}
	}
	return 0, false
}

// tell adds the effects of a transition, and none for one more report of it. fresh
// says that nothing controlled the key before.
func (b *Book) tell(lim *state.Limit, fresh bool, was, next *record.Control) {
	now := b.state.Now
	one := effect.Effect{Limit: lim.Name, Key: next.ID.Key, Client: next.Client, Value: next.Reason}
	switch {
	case next.Blocked && !was.Blocked:
		one.Kind, one.Text = effect.SpendCapReached, "no money is left, a person has to act"
		b.effects.Add(one)
		one.Kind, one.Text = effect.LimitBlocked, "until a person clears it"
	case next.Blocked:
		return
	case next.Paused(now) && !was.Paused(now), fresh:
		one.Kind, one.Text = effect.LimitPaused, slower(next, now)
	default:
		return
	}
	b.effects.Add(one)
}

// slower says how long a key is closed, and what is handed out then.
func slower(c *record.Control, now bucket.Instant) string {
	part := fmt.Sprintf("%d.%02d %% of the rate", c.Pace.At(now)/10_000, c.Pace.At(now)/100%100)
	switch paused := time.Duration(max(0, c.Pace.Opens-now)); {
	case paused == 0:
		return "hands out " + part
	case c.Pace.Start == pace.Whole:
		return fmt.Sprintf("for %v", paused)
	default:
		return fmt.Sprintf("for %v, then from %s", paused, part)
	}
}

// Clear opens a key again after a block, a pause or a ramp, on an operator's word,
// and says whether there was anything to clear.
func (b *Book) Clear(lim *state.Limit, key, author, reason string) bool {
	k := b.state.FindKey(lim.ID, key)
	if k == nil || b.state.ControlOf(k) == nil {
		return false
	}
	b.state.DropControl(lim, k)
	b.effects.Add(effect.Effect{
		Kind: effect.LimitCleared, Limit: lim.Name, Key: key, Client: author, Text: reason,
	})
	return true
}

// Forget lets go of the controls of a limit that is deleted, or whose keys nobody can
// name any more: they live by real time from now on. What was blocked is so no more.
func (b *Book) Forget(lim *state.Limit, why string) {
	for _, c := range b.state.DropControls(lim) {
		if c.Blocked {
			b.effects.Add(effect.Effect{
				Kind: effect.LimitCleared, Limit: lim.Name, Key: c.ID.Key, Text: why,
			})
		}
	}
}

// Closing says why a key under control denies a charge at now, and for how long: 0
// is never. why and wait are what the charge's bucket says, UNSPECIFIED where it
// would pay: they stand where the key is not closed, and where it never would.
func Closing(c *record.Control, now bucket.Instant, why logv1.Reason, wait int64) (logv1.Reason, int64) {
	switch {
	case c.Blocked:
		return logv1.Reason_REASON_BLOCKED, 0
	case !c.Paused(now) || why != logv1.Reason_REASON_UNSPECIFIED && wait == 0:
		return why, wait
	}
	const milli = int64(time.Millisecond)
	left := (int64(c.Pace.Opens-now) + milli - 1) / milli * milli
	return logv1.Reason_REASON_PAUSED, max(left, wait)
}
