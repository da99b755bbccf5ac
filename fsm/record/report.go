package record

import (
	"bytes"
	"cmp"
	"strings"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
)

// ReportLife is how long a report is remembered after it last added something, so
// that a later one books only what is new (T35).
const ReportLife = bucket.Instant(24 * time.Hour)

// SessionID is the id that a client's process drew.
type SessionID [16]byte

// ReportID names what one session counts of one bucket. The owner is a part of
// it: nobody can spoil the counts of another credential's session.
type ReportID struct {
	Session SessionID
	Owner   string
	// Class is as reported: empty for the first one.
	Limit, Key, Dimension, Class string
}

// Report is what a session has reported to have admitted by itself. Names are
// kept, not numbers: a limit that is deleted and comes back is the same to a
// client that was cut off.
type Report struct {
	ID ReportID
	// Client is who the work was for, as said last.
	Client string
	// Tokens is the highest count so far; all of it is booked.
	Tokens int64
	// Settled is how much of what outages left to the session is accounted for, in
	// nanoseconds of the whole rate.
	Settled int64
	// At is when it last grew.
	At, ForgetAt bucket.Instant
}

// Compare orders ids.
func (id *ReportID) Compare(o *ReportID) int {
	return cmp.Or(
		bytes.Compare(id.Session[:], o.Session[:]), strings.Compare(id.Owner, o.Owner),
		strings.Compare(id.Limit, o.Limit), strings.Compare(id.Key, o.Key),
		strings.Compare(id.Dimension, o.Dimension), strings.Compare(id.Class, o.Class),
	)
}

// Sum is the digest of the record.
func (r *Report) Sum() uint64 {
	sum := digest.New(tagReport)
	sum.Text(string(r.ID.Session[:]))
	sum.Text(r.ID.Owner)
	sum.Text(r.ID.Limit)
	sum.Text(r.ID.Key)
	sum.Text(r.ID.Dimension)
	sum.Text(r.ID.Class)
	sum.Text(r.Client)
	sum.Int(r.Tokens)
	sum.Int(int64(r.At))
	sum.Int(int64(r.ForgetAt))
	if r.Settled != 0 {
		sum.Int(r.Settled)
	}
	return sum.Value()
}
