package client

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/block"
	"github.com/quorlease/quorlease/client/failopen"
)

// Charge asks for Amount tokens of one dimension of one limit.
type Charge struct {
	// Limit is its name: [a-z0-9][a-z0-9_.-]{0,62}.
	Limit string
	// Key is the instance, up to 512 bytes; empty for a limit without keys.
	Key string
	// Dimension is what is counted: [a-z][a-z0-9_]{0,62}.
	Dimension string
	// Amount is 1 to 2^53 tokens.
	Amount int64
}

// Request asks for every charge or none (G3).
type Request struct {
	// LeaseID is 32 lower-case hex digits, drawn anew for every piece of work. Empty:
	// the client draws one.
	LeaseID string
	// Client is who the work is for. Empty: Config.Client.
	Client string
	// Class is the priority class. Empty: the first one of each limit.
	Class string
	// Attempt is how many retries were made for this piece of work, 0 first.
	Attempt uint32
	// Track: the lease will be settled, renewed or released, and the request may be
	// repeated without being debited twice (G4).
	Track bool
	// MaxWait is how long to wait in the authority's queue where it can't be granted
	// now, up to 1 h. 0: not at all. Where ctx ends before that it waits less, so
	// that there is time for the answer. Where nobody answers it waits as long for
	// the client's own share of a rate.
	MaxWait time.Duration
	// Charges are up to 16, no limit, key and dimension twice; at least one where there
	// are no Attributes.
	Charges []Charge
	// Attributes say what the work is: at most 32, named like dimensions, values 1 to
	// 256 bytes of UTF-8 without control characters. The authority charges every limit
	// that they fit. Without it the client charges what it was told for the same
	// attributes before; where it was told nothing Config.Fallback decides.
	Attributes map[string]string
	// Amounts are tokens by dimension, each 1 to 2^53 and at most 16, for the limits
	// that the attributes fit. Of requests and slots it is 1 unless it is here.
	Amounts map[string]int64
}

// Source says who decided.
type Source int

// The sources.
const (
	// Node: the node that was asked, alone, as it refuses for a retry budget.
	Node Source = iota
	// Escrow: a node, from tokens that were debited before.
	Escrow
	// Consensus: the authority, by one committed entry.
	Consensus
	// Local: this client, because nobody answered in time.
	Local
)

// String is the source in lower case.
func (s Source) String() string {
	switch s {
	case Node:
		return "node"
	case Escrow:
		return "escrow"
	case Consensus:
		return "consensus"
	case Local:
		return "local"
	default:
		return "unknown"
	}
}

// Decision is the answer to an acquire.
type Decision struct {
	Granted bool
	// Source is Local for every answer that the client gave by itself.
	Source Source
	// Lease is set where Granted.
	Lease Lease
	// Denials say why not, the longest wait first. Empty where Granted.
	Denials []Denial
	// Remaining is level minus debt after the decision, by charge, where the
	// authority said it.
	Remaining []Charge
	// Repeated: the same lease id was answered before.
	Repeated bool
	// Queue says how it waited.
	Queue Queue
	// Warnings are what limits that do not enforce would have refused.
	Warnings []Denial
}

// Queue is how an acquire waited, or would have. It is zero where it neither did
// nor was refused by a queue.
type Queue struct {
	// Position is its place when it came, 1 is the next in turn.
	Position int64
	// ETA is about how long one more would wait now that asks for as much.
	ETA time.Duration
	// Waited is for how long it was held.
	Waited time.Duration
}

// RetryAfter is how long to wait before asking again: the longest hint, and up
// to a tenth more, drawn at random, so that clients that were told the same time
// do not all come back in one instant. Never is true where no waiting helps.
func (d *Decision) RetryAfter() (wait time.Duration, never bool) {
	for i := range d.Denials {
		if d.Denials[i].Never {
			return 0, true
		}
		wait = max(wait, d.Denials[i].RetryAfter)
	}
	return failopen.Jitter(wait), false
}

// Lease is the right to spend what was charged.
type Lease struct {
	ID string
	// Charges are what was charged: for a request with attributes, what the authority
	// made of them.
	Charges []Charge
	// Ends is when the right to spend ends: the ttl, less a thousandth, counted
	// from before the request was first sent.
	Ends time.Time
	// Tracked leases may be settled, renewed and released.
	Tracked bool
	// Local leases were granted by this client. They are settled and released
	// locally, which changes nothing: what was estimated is what is reported.
	Local bool
}

// Denial says why not, and when to come back.
type Denial struct {
	// Reason is one of the authority's: RATE, RETRY_BUDGET and so on. A client that
	// decides by itself has some of its own: LOCAL_CLOSED where the limit is closed
	// while nobody answers, LOCAL_SHARE where its share can't ever pay the charge.
	Reason                string
	Limit, Key, Dimension string
	// RetryAfter is the hint as it was given, whole milliseconds, positive unless
	// Never. Wait Decision.RetryAfter.
	RetryAfter time.Duration
	// Never: no waiting helps.
	Never bool
	// FreesIn is when a retry budget's window would let the client through.
	FreesIn time.Duration
}

// The reasons that only a client has.
const (
	reasonClosed = "LOCAL_CLOSED"
	reasonShare  = "LOCAL_SHARE"
)

// newID draws a lease or session id.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand, Go 1.24)
	return hex.EncodeToString(id[:])
}

// encodeCharges makes the message's charges, in one block.
func encodeCharges(charges []Charge) []*quorleasev1.Charge {
	whole := make([]quorleasev1.Charge, len(charges))
	out := make([]*quorleasev1.Charge, len(charges))
	for i := range charges {
		c := &charges[i]
		whole[i].Limit, whole[i].Key = c.Limit, c.Key
		whole[i].Dimension, whole[i].Amount = c.Dimension, c.Amount
		out[i] = &whole[i]
	}
	return out
}

// decisionOf reads an answer to a request that was first sent after asked.
func decisionOf(r *quorleasev1.AcquireResponse, request *Request, asked time.Time) *Decision {
	d := &Decision{
		Granted:  r.GetDecision() == quorleasev1.Decision_GRANTED,
		Source:   sourceOf(r.GetSource()),
		Repeated: r.GetRepeatedRequest(),
		Warnings: denialsOf(r.GetWarnings()),
	}
	if q := r.GetQueue(); q != nil {
		d.Queue = Queue{q.GetPosition(), durationOf(q.GetEta()), durationOf(q.GetWaited())}
	}
	if lease := r.GetLease(); d.Granted {
		charges := request.Charges
		if len(request.Attributes) > 0 {
			charges = chargesOf(lease.GetCharges())
		}
		d.Lease = Lease{
			ID: lease.GetId(), Charges: charges, Tracked: lease.GetTracked(),
			Ends: asked.Add(block.Life(lease.GetTtl().AsDuration())),
		}
	}
	d.Denials = denialsOf(r.GetDenials())
	d.Remaining = remainingOf(r.GetRemaining())
	return d
}

func chargesOf(list []*quorleasev1.Charge) []Charge {
	out := make([]Charge, len(list))
	for i, c := range list {
		out[i] = Charge{c.GetLimit(), c.GetKey(), c.GetDimension(), c.GetAmount()}
	}
	return out
}

func sourceOf(s quorleasev1.Source) Source {
	switch s {
	case quorleasev1.Source_CONSENSUS:
		return Consensus
	case quorleasev1.Source_ESCROW:
		return Escrow
	case quorleasev1.Source_SOURCE_UNSPECIFIED, quorleasev1.Source_LOCAL:
	}
	return Node
}

func denialsOf(list []*quorleasev1.Denial) []Denial {
	var out []Denial
	for _, d := range list {
		out = append(out, Denial{
			Reason: d.GetReason().String(), Limit: d.GetLimit(), Key: d.GetKey(), Dimension: d.GetDimension(),
			RetryAfter: durationOf(d.GetRetryAfter()), Never: d.GetNever(), FreesIn: durationOf(d.GetFreesIn()),
		})
	}
	return out
}

func remainingOf(list []*quorleasev1.Remaining) []Charge {
	var out []Charge
	for _, r := range list {
		out = append(out, Charge{r.GetLimit(), r.GetKey(), r.GetDimension(), r.GetTokens()})
	}
	return out
}

func durationOf(d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.AsDuration()
}

// localReason is what a client's own reason is called in a Denial.
func localReason(r failopen.Reason) string {
	switch r {
	case failopen.RetryBudget, failopen.Attempts, failopen.Rate:
		return strings.ToUpper(strings.ReplaceAll(r.String(), " ", "_"))
	case failopen.ExceedsShare, failopen.NoShare:
		return reasonShare
	case failopen.Refused, failopen.Granted:
	}
	return reasonClosed
}
