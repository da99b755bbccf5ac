// Package admitted books what clients admitted by themselves while nobody answered.
// It is pure, and works on a state that it is given.
package admitted

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/effect"
	"github.com/quorlease/quorlease/fsm/quota"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/refuse"
	"github.com/quorlease/quorlease/fsm/shares"
	"github.com/quorlease/quorlease/fsm/state"
)

// maxCounts bounds the counts of one report.
const maxCounts = 64

// Book works on the reports of a state. One goroutine calls it, that which applies
// entries.
type Book struct {
	state   *state.State
	effects *effect.List
}

// New is the book of a state; what happens is added to effects.
func New(s *state.State, effects *effect.List) *Book { return &Book{s, effects} }

// Apply books what a client admitted by itself while nobody answered. A count is the
// session's total so far: only what is above the highest one is booked, so that a
// report that comes twice, late, out of order or not at all does no harm (T35). The
// error is a *refuse.Refused.
func (b *Book) Apply(op *logv1.ReportAdmitted) (*logv1.Result, error) {
	ids, err := b.check(op)
	if err != nil {
		return nil, err
	}
	answer := &logv1.AdmittedResult{Bookings: make([]*logv1.Booking, len(ids))}
	for i, c := range op.GetCounts() {
		answer.Bookings[i] = b.book(ids[i], op.GetClient(), c.GetTokens())
	}
	return &logv1.Result{Kind: &logv1.Result_Admitted{Admitted: answer}}, nil
}

// check looks at all of a report before any of it is booked. Where there is no room
// to remember it nothing is: booked twice would be worse than late.
func (b *Book) check(op *logv1.ReportAdmitted) ([]record.ReportID, error) {
	if n := len(op.GetSession()); n != len(record.SessionID{}) {
		return nil, refuse.Field("session", "%d bytes: must be %d", n, len(record.SessionID{}))
	}
	if err := refuse.Text("owner", op.GetOwner(), 0, check.MaxText); err != nil {
		return nil, err
	}
	if err := refuse.Text("client", op.GetClient(), 0, check.MaxText); err != nil {
		return nil, err
	}
	if n := len(op.GetCounts()); n < 1 || n > maxCounts {
		return nil, refuse.Field("counts", "%d: must be from 1 to %d", n, maxCounts)
	}
	ids, fresh := make([]record.ReportID, 0, len(op.GetCounts())), 0
	for i, c := range op.GetCounts() {
		if err := check.Count(c); err != nil {
			return nil, refuse.Wrong(refuse.At("counts", i, ""), err)
		}
		id := record.ReportID{
			Session: record.SessionID(op.GetSession()), Owner: op.GetOwner(),
			Limit: c.GetLimit(), Key: c.GetKey(), Dimension: c.GetDimension(), Class: c.GetClass(),
		}
		if slices.Contains(ids, id) {
			return nil, refuse.Field(refuse.At("counts", i, "dimension"),
				"%q of limit %q: is there twice", id.Dimension, id.Limit)
		}
		ids = append(ids, id)
		if lim, _, _ := b.counted(id); lim != nil && !b.state.Remembers(id) {
			fresh++
		}
	}
	if n := b.state.Reports(); n+fresh > state.MaxReports {
		return nil, refuse.For(logv1.Refusal_CAUSE_REPORT_LIMIT, "counts",
			"%d more: %d reports are remembered, at most %d", fresh, n, state.MaxReports)
	}
	return ids, nil
}

// counted finds limit, dimension and class of a count; nil where they are gone. The
// dimension is -1 where no bucket counts: the limit is unlimited, off, or of slots,
// which nobody holds by now.
func (b *Book) counted(id record.ReportID) (lim *state.Limit, dimension, class int) {
	lim = b.state.FindLimit(id.Limit)
	switch {
	case lim == nil || !lim.Live() || check.WrongKey(lim.Limit.GetKeyed(), id.Key) != "":
		return nil, 0, 0
	case lim.Limit.GetUnlimited() || lim.Limit.GetMode() == logv1.Mode_MODE_OFF ||
		lim.Limit.GetKind() == logv1.Kind_KIND_CONCURRENCY:
		return lim, -1, 0
	}
	dimension = lim.Now().Find(id.Dimension)
	if dimension < 0 || !lim.Now().Dimensions[dimension].Live() {
		return nil, 0, 0
	}
	class, known := lim.Now().Dimensions[dimension].Class(id.Class)
	if !known {
		return nil, 0, 0
	}
	return lim, dimension, class
}

// book takes what is new from the bucket: what the class can take, then debt.
func (b *Book) book(id record.ReportID, client string, tokens int64) *logv1.Booking {
	lim, dimension, class := b.counted(id)
	if lim == nil {
		return &logv1.Booking{Gone: true}
	}
	earned, lapsed := b.earned(id)
	next := record.Report{ID: id, Client: client, Tokens: max(tokens, b.state.Reported(id)), Settled: earned}
	extra, left := next.Tokens-b.state.Reported(id), earned-max(lapsed, b.settled(id, lim, dimension))
	if extra <= 0 && left <= 0 {
		return &logv1.Booking{}
	}
	booking := &logv1.Booking{Tokens: extra}
	if dimension >= 0 {
		k := b.state.FindKey(lim.ID, id.Key)
		if k == nil {
			// Who names no client is known by its credential, as in an acquire.
			maker := cmp.Or(client, id.Owner)
			if b.state.NoRoom(lim) != "" || lim.TooMany(maker, 1) {
				return &logv1.Booking{Gone: true}
			}
			k = b.state.AddKeyFor(lim, id.Key, maker)
		}
		k = b.state.ChangeKey(lim, k)
		one, shape := &k.Held(dimension).Bucket, lim.Now().For(id.Key).Dimensions[dimension].Shape
		one.Advance(shape, b.state.Now)
		owed, beyond := one.Debt(shape, class), b.settle(lim, k, dimension, extra, left)
		booking.WrittenOff = one.Excess(shape, class, beyond)
		booking.Debt = min(one.Debt(shape, class)-owed, beyond-booking.GetWrittenOff())
		quota.Warn(b.effects, lim, k, dimension, client)
	}
	b.state.SetReported(next)
	if beyond := booking.GetWrittenOff(); beyond > 0 {
		b.effects.Add(effect.Effect{
			Kind: effect.DebtWrittenOff, Limit: id.Limit, Key: id.Key, Dimension: id.Dimension, Client: client,
			Value: fmt.Sprint(beyond),
			Text:  fmt.Sprintf("%d admitted without the authority: %d tokens are beyond the debt allowed", extra, beyond),
		})
	}
	return booking
}

// earned is what outages left to a session of a limit, in nanoseconds of its whole rate,
// and how much of that it can account for no more.
func (b *Book) earned(id record.ReportID) (earned, lapsed int64) {
	return b.state.Shares.Earned(shares.ID{Limit: id.Limit, Session: id.Session, Owner: id.Owner})
}

// settled is how much of that a session has accounted for at a bucket, in whichever
// class: the share is one for all of them.
func (b *Book) settled(id record.ReportID, lim *state.Limit, dimension int) int64 {
	settled := b.state.Settled(id)
	if dimension < 0 {
		return settled
	}
	for _, class := range lim.Now().Dimensions[dimension].Classes {
		id.Class = class.GetName()
		settled = max(settled, b.state.Settled(id))
	}
	id.Class = ""
	return max(settled, b.state.Settled(id))
}

// settle accounts for what outages left to a session, left nanoseconds of the whole rate,
// of which it used extra tokens. That much was withheld, as spent; what was not goes back.
// It returns what the session used beyond it, which nobody has paid for.
func (b *Book) settle(lim *state.Limit, k *state.Key, dimension int, extra, left int64) (beyond int64) {
	shape := lim.Now().For(k.Name).Dimensions[dimension].Shape
	share := shape.TokensIn(time.Duration(left))
	back := min(share-min(extra, share), k.Withheld(dimension))
	if back > 0 {
		k.Held(dimension).Bucket.Raise(shape, back)
		k.SetWithheld(dimension, k.Withheld(dimension)-back)
	}
	return extra - min(extra, share)
}
