package shares

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/record"
)

const (
	// Whole is all of a limit, in parts per million.
	Whole = 1_000_000
	// ValidFor is for how long after a refresh a session that is cut off may begin to use
	// its share, and Hold for how long it may use it, and it is kept for it.
	ValidFor = 10 * time.Second
	Hold     = 10 * time.Minute
	// settleWithin is how long a session is in touch again after an outage until it has
	// reported what it used, or has used nothing.
	settleWithin = 10 * time.Second

	// MaxEntries and MaxSessions bound the entries, and those of one limit (G10). With
	// the longest names an entry is a kilobyte.
	MaxEntries  = 100_000
	MaxSessions = 10_000
	// MaxVersion bounds what a session may say that it holds.
	MaxVersion = 1 << 62
	// maxPromises bounds the promises of which one may be held: to a session that does
	// not say that it knows of them none is added.
	maxPromises = 16

	tagShare = 14
)

// ID names a session at a limit. Names are kept, not numbers: a limit that is deleted
// and comes back is the same to who is cut off. The owner is a part of it: nobody can
// end the session of another credential.
type ID struct {
	Limit   string
	Session record.SessionID
	Owner   string
}

func (id *ID) compare(o *ID) int {
	return cmp.Or(strings.Compare(id.Limit, o.Limit), bytes.Compare(id.Session[:], o.Session[:]),
		strings.Compare(id.Owner, o.Owner))
}

// Promise is a part of a limit that a session may use while nobody answers it. The zero
// Promise is none, which is not one of nothing (T52).
type Promise struct {
	Version uint64
	// PPM is 0 to Whole.
	PPM int64
}

// Entry is what one session was promised of one limit.
type Entry struct {
	ID ID
	// heard is when the session was heard of last. Outages do not count: nobody could be.
	heard bucket.Instant
	// promises are those that may be held, by version, each smaller than the one before:
	// whoever may hold a larger one later is counted with that.
	promises []Promise
	// earned is what outages left to the session, in nanoseconds of the whole rate, lapsed
	// how much of that it can account for no more. outlived is when the last was over.
	earned, lapsed int64
	outlived       bucket.Instant

	generation uint32
	place      int32
	digest     uint64
}

// Key, Generation and Clone are for the table, Place and Before for the queue.
func (e *Entry) Key() ID              { return e.ID }
func (e *Entry) Generation() *uint32  { return &e.generation }
func (e *Entry) Place() *int32        { return &e.place }
func (e *Entry) Before(o *Entry) bool { return e.ID.compare(&o.ID) < 0 }

func (e *Entry) Clone() *Entry {
	c := *e
	c.promises = slices.Clone(e.promises)
	return &c
}

// newest is the last promise, the zero one where there is none.
func (e *Entry) newest() Promise {
	if len(e.promises) == 0 {
		return Promise{}
	}
	return e.promises[len(e.promises)-1]
}

// largest is the most that the session may be using.
func (e *Entry) largest() int64 {
	if len(e.promises) == 0 {
		return 0
	}
	return e.promises[0].PPM
}

// holds drops what a session that holds a version uses no more. One that says more than
// it was told knows nothing of this book, and nothing follows from it.
func (e *Entry) holds(version uint64) {
	if version > e.newest().Version {
		return
	}
	e.promises = slices.DeleteFunc(e.promises, func(p Promise) bool { return p.Version < version })
}

// promise adds one above every version that there was.
func (e *Entry) promise(held uint64, ppm int64) {
	version := max(held, e.newest().Version) + 1
	for len(e.promises) > 0 && e.newest().PPM <= ppm {
		e.promises = e.promises[:len(e.promises)-1]
	}
	e.promises = append(e.promises, Promise{version, ppm})
}

// endure takes an outage in. What the session did not report of earlier ones, though it
// was in touch since, is lost: the bucket may have been full meanwhile, and what a later
// outage withholds is others' too (T51).
func (e *Entry) endure(o Outage) {
	if e.heard-e.outlived >= bucket.Instant(settleWithin) {
		e.lapsed = e.earned
	}
	e.heard += o.To - o.From
	e.earned += part(int64(o.To-o.From), e.largest())
	e.outlived = o.To
}

func (e *Entry) due() int64 { return int64(e.heard) + int64(Hold) }

// sum is the digest of the record.
func (e *Entry) sum() uint64 {
	sum := digest.New(tagShare)
	sum.Text(e.ID.Limit)
	sum.Text(string(e.ID.Session[:]))
	sum.Text(e.ID.Owner)
	sum.Int(int64(e.heard))
	sum.Int(e.earned)
	sum.Int(e.lapsed)
	sum.Int(int64(e.outlived))
	for _, p := range e.promises {
		sum.Word(p.Version)
		sum.Int(p.PPM)
	}
	return sum.Value()
}

// Shared says whether clients share a limit while nobody answers them.
func Shared(l *logv1.Limit) bool {
	return l.GetOnQuorumLoss() == logv1.OnQuorumLoss_ON_QUORUM_LOSS_SHARE &&
		l.GetMode() == logv1.Mode_MODE_ENFORCE && !l.GetUnlimited()
}

// Withholds says whether an outage withholds refill of a limit.
func Withholds(l *logv1.Limit) bool { return Shared(l) && l.GetKind() == logv1.Kind_KIND_RATE }
