package items

import "google.golang.org/protobuf/encoding/protowire"

// reader reads one message of the wire. Texts are parts of what it reads. Where
// ok is false it met something that is not for it.
type reader struct {
	rest string
	bad  bool
}

// next is the number and the type of the next field; 0 at the end, or where there
// can be none.
func (r *reader) next() (protowire.Number, protowire.Type) {
	if len(r.rest) == 0 {
		return 0, 0
	}
	// Numbers up to 15 take one byte, and no other is read here.
	tag := r.rest[0]
	if tag >= 0x80 || tag < 8 {
		r.bad = true
		return 0, 0
	}
	r.rest = r.rest[1:]
	return protowire.Number(tag >> 3), protowire.Type(tag & 7)
}

// varint reads a number of at most nine bytes; what takes ten is negative and no
// number that anything here has.
func (r *reader) varint() uint64 {
	value, most := uint64(0), min(len(r.rest), 9)
	for i := range most {
		b := r.rest[i]
		value |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			r.rest = r.rest[i+1:]
			return value
		}
	}
	r.bad, r.rest = true, ""
	return 0
}

// text reads what has a length before it.
func (r *reader) text() string {
	n := r.varint()
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, ""
		return ""
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}

// once notes that a field was met, and refuses its second time: what that means the
// generated code knows.
func (r *reader) once(seen *uint32, number protowire.Number) {
	bit := uint32(1) << number
	r.bad = r.bad || *seen&bit != 0
	*seen |= bit
}
