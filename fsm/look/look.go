// Package look finds what makes an entry unfit to be applied, and what the
// generated decoder lets pass.
package look

import (
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Findings are what makes an entry unfit to be applied.
type Findings struct {
	// Unknown: some part has a field that this program does not know. To ignore
	// one would be to apply less than others do.
	Unknown bool
	// Garbled: some text is not valid UTF-8.
	Garbled bool
}

// Through looks through all of an entry. The operations that come by the thousand are
// looked at without reflection.
func Through(entry *logv1.Entry) Findings {
	var f Findings
	f.plain(entry)
	for _, op := range entry.GetOperations() {
		f.Operation(op)
	}
	return f
}

// Operation adds what is wrong with one operation.
func (f *Findings) Operation(op *logv1.Operation) {
	switch kind := op.GetKind().(type) {
	case *logv1.Operation_Acquire:
		f.plain(op)
		f.plain(kind.Acquire)
		f.text(kind.Acquire.GetClient(), kind.Acquire.GetClass(), kind.Acquire.GetOwner())
		for _, c := range kind.Acquire.GetCharges() {
			f.plain(c)
			f.text(c.GetLimit(), c.GetKey(), c.GetDimension())
			f.escrow(c.GetEscrow())
		}
	case *logv1.Operation_Settle:
		f.plain(op)
		f.plain(kind.Settle)
		f.text(kind.Settle.GetOwner())
		f.usages(kind.Settle.GetUsed())
	case *logv1.Operation_Renew:
		f.plain(op)
		f.plain(kind.Renew)
		f.text(kind.Renew.GetOwner())
		f.usages(kind.Renew.GetUsed())
	case *logv1.Operation_Release:
		f.plain(op)
		f.plain(kind.Release)
		f.text(kind.Release.GetOwner(), kind.Release.GetClient())
	case *logv1.Operation_AskEscrow:
		f.plain(op)
		f.plain(kind.AskEscrow)
		f.escrow(kind.AskEscrow.GetId())
		f.text(kind.AskEscrow.GetLimit(), kind.AskEscrow.GetKey(), kind.AskEscrow.GetDimension(), kind.AskEscrow.GetClass())
	case *logv1.Operation_ReturnEscrow:
		f.plain(op)
		f.plain(kind.ReturnEscrow)
		for _, r := range kind.ReturnEscrow.GetReturns() {
			f.plain(r)
			f.escrow(r.GetId())
		}
	default:
		f.any(op.ProtoReflect())
	}
}

func (f *Findings) escrow(id *logv1.EscrowID) {
	if id != nil {
		f.plain(id)
		f.text(id.GetNode())
	}
}

func (f *Findings) usages(usages []*logv1.Usage) {
	for _, u := range usages {
		f.plain(u)
		f.text(u.GetLimit(), u.GetKey(), u.GetDimension())
	}
}

func (f *Findings) plain(message proto.Message) {
	f.Unknown = f.Unknown || len(message.ProtoReflect().GetUnknown()) > 0
}

func (f *Findings) text(texts ...string) {
	for _, t := range texts {
		f.Garbled = f.Garbled || !utf8.ValidString(t)
	}
}

// any looks through a message of any type.
func (f *Findings) any(message protoreflect.Message) {
	f.Unknown = f.Unknown || len(message.GetUnknown()) > 0
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		each := func(v protoreflect.Value) {
			switch {
			case field.Message() != nil:
				f.any(v.Message())
			case field.Kind() == protoreflect.StringKind:
				f.text(v.String())
			}
		}
		if !field.IsList() {
			each(value)
			return true
		}
		for i := range value.List().Len() {
			each(value.List().Get(i))
		}
		return true
	})
}
