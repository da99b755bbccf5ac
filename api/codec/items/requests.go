package items

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// Requests is a SessionRequest as a node receives it. It may be received into again.
type Requests struct {
	// Other is the message where it does not carry items.
	Other *quorleasev1.SessionRequest
	// Carries says that it carries items; they may be none.
	Carries bool
	Items   []Request

	// plain is the one that was asked for last.
	plain acquire
}

// Request is one item.
type Request struct {
	// text are its bytes, a part of those of the message.
	text string
	// item is nil for a plain acquire.
	item *quorleasev1.RequestItem
}

// acquire is an item that is a plain acquire: of one charge, without a lease id or
// anything else but client, class, attempt and the revision that it knows of.
type acquire struct {
	item     quorleasev1.RequestItem
	kind     quorleasev1.RequestItem_Acquire
	request  quorleasev1.AcquireRequest
	timeout  durationpb.Duration
	charge   quorleasev1.Charge
	charges  [1]*quorleasev1.Charge
	revision uint64
}

// itemsKept is for how many items room is kept while nothing is received (G10).
const itemsKept = 128

// Reset forgets the message.
func (r *Requests) Reset() {
	if clear(r.Items); cap(r.Items) > itemsKept {
		r.Items = nil
	}
	r.Other, r.Carries, r.Items = nil, false, r.Items[:0]
	r.plain.clear()
}

// SizeVT and MarshalToSizedBufferVT are what a codec asks for of what is sent; this
// is only received.
func (r *Requests) SizeVT() int { return 0 }

// MarshalToSizedBufferVT encodes nothing.
func (r *Requests) MarshalToSizedBufferVT([]byte) (int, error) { return 0, nil }

// UnmarshalVT decodes a SessionRequest and keeps nothing of from. What can't be decoded
// is an error before anything of the message is handed out.
func (r *Requests) UnmarshalVT(from []byte) error {
	// The texts of all items are one piece of memory.
	if r.read(string(from)) {
		return nil
	}
	r.Reset()
	all := &quorleasev1.SessionRequest{}
	if err := all.UnmarshalVT(from); err != nil {
		return err
	}
	list, carries := all.GetKind().(*quorleasev1.SessionRequest_Items)
	if !carries {
		r.Other = all
		return nil
	}
	r.Carries = true
	for _, item := range list.Items.GetItems() {
		r.Items = append(r.Items, Request{item: item})
	}
	return nil
}

// read says no where the message is not one of items as they all are.
func (r *Requests) read(from string) bool {
	in := reader{rest: from}
	if number, kind := in.next(); number != kindItems || kind != protowire.BytesType {
		return false
	}
	r.Carries = true
	list := reader{rest: in.text()}
	if in.bad || in.rest != "" {
		return false
	}
	for {
		switch number, kind := list.next(); {
		case number == listItem && kind == protowire.BytesType:
			one := Request{text: list.text()}
			if !r.plain.read(one.text) {
				one.item = &quorleasev1.RequestItem{}
				list.bad = one.item.UnmarshalVT([]byte(one.text)) != nil || list.bad
			}
			r.Items = append(r.Items, one)
		default:
			return number == 0 && !list.bad
		}
	}
}

// Plain is item i where it is a plain acquire, else nil. It is good until the next one
// is asked for, and its texts hold on to the whole message.
func (r *Requests) Plain(i int) *quorleasev1.RequestItem {
	one := &r.Items[i]
	if one.item != nil || !r.plain.read(one.text) {
		return nil
	}
	return &r.plain.item
}

// Item is item i in memory of its own.
func (r *Requests) Item(i int) *quorleasev1.RequestItem {
	one := &r.Items[i]
	if one.item != nil {
		return one.item
	}
	own := &acquire{}
	own.read(strings.Clone(one.text))
	return &own.item
}

// Size is that of item i on the wire, in bytes.
func (r *Requests) Size(i int) int {
	if one := &r.Items[i]; one.text == "" {
		return one.item.SizeVT()
	}
	return len(r.Items[i].text)
}

// The fields of what is read here, by their messages.
const (
	itemTimeout                                                 = 2
	requestClient, requestClass, requestAttempt, requestCharges = 2, 3, 4, 7
	requestRevision                                             = 10
)

// read reads an item that is a plain acquire, and says no where it is another one.
func (a *acquire) read(from string) bool {
	a.clear()
	r := reader{rest: from}
	var seen uint32
	for {
		number, kind := r.next()
		switch {
		case number == itemSeq && kind == protowire.VarintType:
			a.item.Seq = r.varint()
		case number == itemTimeout && kind == protowire.BytesType:
			r.once(&seen, number)
			a.item.Timeout = &a.timeout
			r.bad = !readDuration(r.text(), &a.timeout) || r.bad
		case number == itemAcquire && kind == protowire.BytesType:
			r.once(&seen, number)
			a.kind.Acquire, a.item.Operation = &a.request, &a.kind
			r.bad = !a.acquired(r.text()) || r.bad
		default:
			return number == 0 && !r.bad && seen>>itemAcquire != 0
		}
	}
}

// acquired reads an AcquireRequest.
func (a *acquire) acquired(from string) bool {
	r := reader{rest: from}
	var seen uint32
	for {
		number, kind := r.next()
		switch {
		case number == requestClient && kind == protowire.BytesType:
			a.request.Client = r.text()
		case number == requestClass && kind == protowire.BytesType:
			a.request.Class = r.text()
		case number == requestAttempt && kind == protowire.VarintType:
			a.request.Attempt = uint32(r.varint())
		case number == requestRevision && kind == protowire.VarintType:
			a.revision = r.varint()
			a.request.KnownRevision = &a.revision
		case number == requestCharges && kind == protowire.BytesType:
			r.once(&seen, number)
			a.charges[0], a.request.Charges = &a.charge, a.charges[:]
			r.bad = !readCharge(r.text(), &a.charge) || r.bad
		default:
			return number == 0 && !r.bad && seen != 0
		}
	}
}

// clear forgets what was read. Nothing else is ever set.
func (a *acquire) clear() {
	a.item.Seq, a.item.Timeout, a.item.Operation = 0, nil, nil
	a.request.Client, a.request.Class, a.request.Attempt = "", "", 0
	a.request.Charges, a.request.KnownRevision = nil, nil
	a.timeout.Seconds, a.timeout.Nanos = 0, 0
	a.charge.Limit, a.charge.Key, a.charge.Dimension, a.charge.Amount = "", "", "", 0
}
