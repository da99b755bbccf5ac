package fsm

import (
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// findings are what makes an entry unfit to be applied. The generated decoder
// lets both pass.
type findings struct {
	// unknown: some part has a field that this program does not know. To ignore
	// one would be to apply less than others do.
	unknown bool
	// garbled: some text is not valid UTF-8.
	garbled bool
}

// look goes through all of an entry. The operations that come by the thousand are
// looked at without reflection.
func look(entry *logv1.Entry) findings {
	var f findings
	f.plain(entry)
	for _, op := range entry.GetOperations() {
		f.operation(op)
	}
	return f
}

func (f *findings) operation(op *logv1.Operation) {
	switch kind := op.GetKind().(type) {
	case *logv1.Operation_Acquire:
		f.plain(op)
		f.plain(kind.Acquire)
		f.text(kind.Acquire.GetClient(), kind.Acquire.GetClass(), kind.Acquire.GetOwner())
		for _, c := range kind.Acquire.GetCharges() {
			f.plain(c)
			f.text(c.GetLimit(), c.GetKey(), c.GetDimension())
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
	default:
		f.any(op.ProtoReflect())
	}
}

func (f *findings) usages(usages []*logv1.Usage) {
	for _, u := range usages {
		f.plain(u)
		f.text(u.GetLimit(), u.GetKey(), u.GetDimension())
	}
}

func (f *findings) plain(message proto.Message) {
	f.unknown = f.unknown || len(message.ProtoReflect().GetUnknown()) > 0
}

func (f *findings) text(texts ...string) {
	for _, t := range texts {
		f.garbled = f.garbled || !utf8.ValidString(t)
	}
}

// any looks through a message of any type.
func (f *findings) any(message protoreflect.Message) {
	f.unknown = f.unknown || len(message.GetUnknown()) > 0
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
