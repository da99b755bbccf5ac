package items

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Answers is a SessionResponse as a client receives it. It may be received into
// again; the answers themselves are new each time, and whoever has one may keep it.
type Answers struct{ Items []*quorleasev1.ResponseItem }

// Reset forgets the answers.
func (a *Answers) Reset() {
	clear(a.Items)
	a.Items = a.Items[:0]
}

// SizeVT and MarshalToSizedBufferVT are what a codec asks for of what is sent; this
// is only received.
func (a *Answers) SizeVT() int { return 0 }

// MarshalToSizedBufferVT encodes nothing.
func (a *Answers) MarshalToSizedBufferVT([]byte) (int, error) { return 0, nil }

// UnmarshalVT decodes a SessionResponse and keeps nothing of from.
func (a *Answers) UnmarshalVT(from []byte) error {
	if a.read(string(from)) {
		return nil
	}
	a.Reset()
	var all quorleasev1.SessionResponse
	if err := all.UnmarshalVT(from); err != nil {
		return err
	}
	a.Items = append(a.Items, all.GetItems().GetItems()...)
	return nil
}

// read says no where the message is not as they all are.
func (a *Answers) read(from string) bool {
	r := reader{rest: from}
	for {
		switch number, kind := r.next(); {
		case number == kindItems && kind == protowire.BytesType:
			r.bad = !a.readList(r.text()) || r.bad
		default:
			return number == 0 && !r.bad
		}
	}
}

func (a *Answers) readList(from string) bool {
	r := reader{rest: from}
	for {
		switch number, kind := r.next(); {
		case number == listItem && kind == protowire.BytesType:
			// Whoever keeps a text of an answer keeps no other answer with it.
			one := strings.Clone(r.text())
			item := grantOf(one)
			if item == nil {
				item = &quorleasev1.ResponseItem{}
				r.bad = item.UnmarshalVT([]byte(one)) != nil || r.bad
			}
			a.Items = append(a.Items, item)
		default:
			return number == 0 && !r.bad
		}
	}
}

// The fields of SessionRequest, SessionResponse, RequestItems and ResponseItems.
const (
	kindItems = 2
	listItem  = 1
)

// grant is the answer to an acquire of one charge that was granted, in one piece of
// memory.
type grant struct {
	item    quorleasev1.ResponseItem
	kind    quorleasev1.ResponseItem_Acquire
	acquire quorleasev1.AcquireResponse
	lease   quorleasev1.Lease
	ttl     durationpb.Duration
	charge  quorleasev1.Charge
	charges [1]*quorleasev1.Charge
}

// The fields of what is read here, by their messages.
const (
	itemSeq, itemAcquire                                      = 1, 3
	acquireDecision, acquireLease, acquireSource              = 1, 2, 4
	leaseID, leaseCharges, leaseTTL, leaseTracked, leaseState = 1, 2, 3, 4, 5
	durationSeconds, durationNanos                            = 1, 2
	chargeLimit, chargeKey, chargeDimension, chargeAmount     = 1, 2, 3, 4
)

// grantOf reads an answer, nil where it is another one than a grant of one charge.
func grantOf(from string) *quorleasev1.ResponseItem {
	g := &grant{}
	r := reader{rest: from}
	var seen uint32
	for {
		number, kind := r.next()
		switch {
		case number == itemSeq && kind == protowire.VarintType:
			g.item.Seq = r.varint()
		case number == itemAcquire && kind == protowire.BytesType:
			r.once(&seen, number)
			r.bad = !g.acquired(r.text()) || r.bad
		case number == 0 && !r.bad && seen != 0:
			g.kind.Acquire, g.item.Answer = &g.acquire, &g.kind
			return &g.item
		default:
			return nil
		}
	}
}

// acquired reads an AcquireResponse.
func (g *grant) acquired(from string) bool {
	r := reader{rest: from}
	var seen uint32
	for {
		number, kind := r.next()
		switch {
		case number == acquireDecision && kind == protowire.VarintType:
			g.acquire.Decision = quorleasev1.Decision(r.varint())
		case number == acquireSource && kind == protowire.VarintType:
			g.acquire.Source = quorleasev1.Source(r.varint())
		case number == acquireLease && kind == protowire.BytesType:
			r.once(&seen, number)
			g.acquire.Lease = &g.lease
			r.bad = !g.leased(r.text()) || r.bad
		default:
			return number == 0 && !r.bad
		}
	}
}

// leased reads a Lease.
func (g *grant) leased(from string) bool {
	r := reader{rest: from}
	var seen uint32
	for {
		number, kind := r.next()
		switch {
		case number == leaseID && kind == protowire.BytesType:
			g.lease.Id = r.text()
		case number == leaseTracked && kind == protowire.VarintType:
			g.lease.Tracked = r.varint() != 0
		case number == leaseState && kind == protowire.VarintType:
			g.lease.State = quorleasev1.LeaseState(r.varint())
		case number == leaseCharges && kind == protowire.BytesType:
			r.once(&seen, number)
			g.charges[0], g.lease.Charges = &g.charge, g.charges[:]
			r.bad = !readCharge(r.text(), &g.charge) || r.bad
		case number == leaseTTL && kind == protowire.BytesType:
			r.once(&seen, number)
			g.lease.Ttl = &g.ttl
			r.bad = !readDuration(r.text(), &g.ttl) || r.bad
		default:
			return number == 0 && !r.bad
		}
	}
}

func readDuration(from string, to *durationpb.Duration) bool {
	r := reader{rest: from}
	for {
		number, kind := r.next()
		switch {
		case number == durationSeconds && kind == protowire.VarintType:
			to.Seconds = int64(r.varint())
		case number == durationNanos && kind == protowire.VarintType:
			to.Nanos = int32(r.varint())
		default:
			return number == 0 && !r.bad
		}
	}
}

func readCharge(from string, to *quorleasev1.Charge) bool {
	r := reader{rest: from}
	for {
		number, kind := r.next()
		switch {
		case number == chargeLimit && kind == protowire.BytesType:
			to.Limit = r.text()
		case number == chargeKey && kind == protowire.BytesType:
			to.Key = r.text()
		case number == chargeDimension && kind == protowire.BytesType:
			to.Dimension = r.text()
		case number == chargeAmount && kind == protowire.VarintType:
			to.Amount = int64(r.varint())
		default:
			return number == 0 && !r.bad
		}
	}
}
