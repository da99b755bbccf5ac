// Package unpack decodes the messages of log entries.
//
// Nearly all operations of a busy node are acquires of one charge without a record, and
// name what those before them named. They are decoded by hand, side by side into one
// piece of memory, and a text that was there before is not made again. Everything else
// is the generated decoder's, and so is whatever looks unusual: what comes out is the
// same.
//
// The package is pure but for the seed of a hash, on which nothing depends.
package unpack

import (
	"hash/maphash"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/look"
)

const (
	// together is how many operations lie in one piece of memory, which stays as long as
	// one of them is used.
	together = 32
	// textsKept bounds the texts that are remembered, textMost the length of one in bytes:
	// together a quarter of a megabyte.
	textsKept = 4096
	textMost  = 64
)

// Decoder decodes entries. The zero value is ready. It is for one goroutine.
type Decoder struct {
	// last are the texts of the operation before.
	last struct{ owner, client, class, limit, dimension string }
	// texts are those seen last, each at the place that its hash says.
	texts []string
	seed  maphash.Seed
	room  []acquired
}

// acquired is an operation in one piece of memory.
type acquired struct {
	operation logv1.Operation
	kind      logv1.Operation_Acquire
	acquire   logv1.Acquire
	charge    logv1.Charge
	charges   [1]*logv1.Charge
}

// The numbers of fields.
const (
	entryStamp, entryWall, entryOperations, entryTerm = 1, 2, 3, 4

	operationAcquire = 1

	acquireOwner, acquireClient, acquireClass = 2, 3, 4
	acquireCharges, acquireRevision           = 6, 8
	acquireContent                            = 11
	chargeLimit, chargeKey, chargeDimension   = 1, 2, 3
	chargeAmount, chargeKeep                  = 4, 5
	bytesType, varintType, fixedType          = protowire.BytesType, protowire.VarintType, protowire.Fixed64Type
)

// Entry decodes an entry, which shares nothing with data, and says what look.Through
// would. The error is the generated decoder's.
func (d *Decoder) Entry(data []byte) (*logv1.Entry, look.Findings, error) {
	if entry, found, ok := d.entry(data); ok {
		return entry, found, nil
	}
	entry := &logv1.Entry{}
	if err := entry.UnmarshalVT(data); err != nil {
		return nil, look.Findings{}, err
	}
	return entry, look.Through(entry), nil
}

// entry says no to what the generated decoder must look at.
func (d *Decoder) entry(data []byte) (entry *logv1.Entry, found look.Findings, ok bool) {
	entry = &logv1.Entry{}
	for len(data) > 0 {
		f, rest, ok := next(data)
		if !ok {
			return nil, found, false
		}
		data = rest
		switch {
		case f.is(entryStamp, varintType):
			entry.Stamp = int64(f.number)
		case f.is(entryWall, varintType):
			entry.Wall = int64(f.number)
		case f.is(entryTerm, varintType):
			entry.Term = f.number
		case f.is(entryOperations, bytesType):
			op := d.operation(f.bytes)
			if op == nil {
				op = &logv1.Operation{}
				if op.UnmarshalVT(f.bytes) != nil {
					return nil, found, false
				}
				found.Operation(op)
			}
			entry.Operations = append(entry.Operations, op)
		default:
			return nil, found, false
		}
	}
	return entry, found, true
}

// operation is nil for what is no acquire of one charge without a record.
func (d *Decoder) operation(data []byte) *logv1.Operation {
	f, rest, ok := next(data)
	if !ok || len(rest) > 0 || !f.is(operationAcquire, bytesType) {
		return nil
	}
	if len(d.room) == 0 {
		d.room = make([]acquired, together)
	}
	a := &d.room[0]
	if !d.acquire(f.bytes, a) {
		*a = acquired{}
		return nil
	}
	d.room = d.room[1:]
	a.kind.Acquire = &a.acquire
	a.operation.Kind = &a.kind
	return &a.operation
}

func (d *Decoder) acquire(data []byte, a *acquired) bool {
	to := &a.acquire
	for len(data) > 0 {
		f, rest, ok := next(data)
		if !ok {
			return false
		}
		data = rest
		switch {
		case f.is(acquireOwner, bytesType):
			to.Owner, ok = d.again(&d.last.owner, f.bytes)
		case f.is(acquireClient, bytesType):
			to.Client, ok = d.again(&d.last.client, f.bytes)
		case f.is(acquireClass, bytesType):
			to.Class, ok = d.again(&d.last.class, f.bytes)
		case f.is(acquireRevision, varintType):
			revision := f.number
			to.Revision = &revision
		case f.is(acquireContent, fixedType):
			to.Content = f.number
		case f.is(acquireCharges, bytesType) && to.Charges == nil:
			a.charges[0] = &a.charge
			to.Charges = a.charges[:1:1]
			ok = d.charge(f.bytes, &a.charge)
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return true
}

func (d *Decoder) charge(data []byte, to *logv1.Charge) bool {
	for len(data) > 0 {
		f, rest, ok := next(data)
		if !ok {
			return false
		}
		data = rest
		switch {
		case f.is(chargeLimit, bytesType):
			to.Limit, ok = d.again(&d.last.limit, f.bytes)
		case f.is(chargeKey, bytesType):
			to.Key, ok = d.text(f.bytes)
		case f.is(chargeDimension, bytesType):
			to.Dimension, ok = d.again(&d.last.dimension, f.bytes)
		case f.is(chargeAmount, varintType):
			to.Amount = int64(f.number)
		case f.is(chargeKeep, varintType):
			to.Keep = int64(f.number)
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return true
}

// again is text, which most often is the same as before.
func (d *Decoder) again(last *string, data []byte) (text string, ok bool) {
	if string(data) != *last {
		if text, ok = d.text(data); !ok {
			return "", false
		}
		*last = text
	}
	return *last, true
}

// text makes a text of data, unless it is remembered. It says no to what is not valid
// UTF-8.
func (d *Decoder) text(data []byte) (text string, ok bool) {
	if len(data) > textMost {
		return string(data), utf8.Valid(data)
	}
	if d.texts == nil {
		d.texts, d.seed = make([]string, textsKept), maphash.MakeSeed()
	}
	// Two texts that fall on one pair of places are both remembered.
	pair := d.texts[maphash.Bytes(d.seed, data)%(textsKept/2)*2:][:2]
	for _, text := range pair {
		if text == string(data) {
			return text, true
		}
	}
	if !utf8.Valid(data) {
		return "", false
	}
	pair[0], pair[1] = string(data), pair[0]
	return pair[0], true
}

// field is one field of a message: its bytes, or its number.
type field struct {
	tag    protowire.Number
	kind   protowire.Type
	number uint64
	bytes  []byte
}

func (f *field) is(tag protowire.Number, kind protowire.Type) bool {
	return f.tag == tag && f.kind == kind
}

// next takes the first field off a message. It says no where there is none that this
// package knows how to read.
func next(data []byte) (f field, rest []byte, ok bool) {
	var n int
	if f.tag, f.kind, n = protowire.ConsumeTag(data); n < 0 {
		return f, nil, false
	}
	data = data[n:]
	switch f.kind {
	case varintType:
		f.number, n = protowire.ConsumeVarint(data)
	case fixedType:
		f.number, n = protowire.ConsumeFixed64(data)
	case bytesType:
		f.bytes, n = protowire.ConsumeBytes(data)
	default:
		return f, nil, false
	}
	if n < 0 {
		return f, nil, false
	}
	return f, data[n:], true
}
