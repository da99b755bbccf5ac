package stream

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
)

// A message has a prelude of its length, its headers' length and a checksum of both, then the
// headers, the payload, and a checksum of everything before.
const (
	preludeLen  = 12
	checksumLen = 4
	// messageMax is the longest message that is believed. The format allows 24 MiB.
	messageMax = 24 << 20
)

// messages finds where the messages of application/vnd.amazon.eventstream end.
type messages struct {
	prelude [preludeLen]byte
	// read is how much of the present message has come, and length how long it is.
	read, length uint32
	broken       bool
}

func (m *messages) lost() bool { return m.broken }

func (m *messages) ends(c byte) bool {
	if m.read < preludeLen {
		m.prelude[m.read] = c
	}
	m.read++
	switch {
	case m.read == preludeLen:
		m.length = binary.BigEndian.Uint32(m.prelude[:])
		headers := binary.BigEndian.Uint32(m.prelude[4:])
		m.broken = binary.BigEndian.Uint32(m.prelude[8:]) != crc32.ChecksumIEEE(m.prelude[:8]) ||
			m.length > messageMax || m.length < preludeLen+checksumLen || headers > m.length-preludeLen-checksumLen
		return m.broken
	case m.read > preludeLen && m.read == m.length:
		m.read = 0
		return true
	default:
		return false
	}
}

// parse reads a message. One whose checksum is wrong is not looked at, and passes.
func (m *messages) parse(f *Frame) {
	end := len(f.Raw) - checksumLen
	if end < preludeLen || binary.BigEndian.Uint32(f.Raw[end:]) != crc32.ChecksumIEEE(f.Raw[:end]) {
		f.Whole = false
		return
	}
	payload := preludeLen + int(binary.BigEndian.Uint32(f.Raw[4:]))
	h, ok := readHeaders(f.Raw[preludeLen:payload])
	if !ok {
		f.Whole = false
		return
	}
	f.Data, f.dataAt = f.Raw[payload:end], payload
	switch h.kind {
	case "event":
		f.Event = h.event
	case "exception":
		f.Event, f.Fault = h.exception, true
	case "error":
		f.Event, f.Fault = h.code, true
		f.Data, f.dataAt = []byte(h.message), -1
	}
	if !f.Fault && f.Event == "chunk" {
		f.unwrap()
	}
}

// unwrap takes what a model has said out of what is put around it: {"bytes":"base64"}.
func (f *Frame) unwrap() {
	var wrapped struct {
		Bytes []byte `json:"bytes"`
	}
	if json.Unmarshal(f.Data, &wrapped) == nil && len(wrapped.Bytes) > 0 {
		f.Data, f.dataAt = wrapped.Bytes, -1
	}
}

// headers are those of a message that say what it is.
type headers struct{ kind, event, exception, code, message string }

// The types of values, and how long the values are that always are as long.
const (
	typeBytes  = 6
	typeString = 7
)

var lengths = [...]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, typeBytes: -1, typeString: -1, 8: 8, 9: 16}

// readHeaders is false where they are not as the format has them.
func readHeaders(b []byte) (h headers, ok bool) {
	known := map[string]*string{
		":message-type": &h.kind, ":event-type": &h.event, ":exception-type": &h.exception,
		":error-code": &h.code, ":error-message": &h.message,
	}
	for len(b) > 0 {
		named := 1 + int(b[0])
		if named == 1 || len(b) <= named || int(b[named]) >= len(lengths) {
			return headers{}, false
		}
		name, kind := b[1:named], b[named]
		b = b[named+1:]
		length := lengths[kind]
		if length < 0 {
			if len(b) < 2 {
				return headers{}, false
			}
			length = int(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) < length {
			return headers{}, false
		}
		if to := known[string(name)]; to != nil && kind == typeString {
			*to = string(b[:length])
		}
		b = b[length:]
	}
	return h, true
}

// AppendMessage appends a message to b, for those who play a provider: its payload, and pairs of
// names and texts as its headers, each name up to 255 bytes and each text up to 65,535.
func AppendMessage(b []byte, payload string, pairs ...string) []byte {
	var headers []byte
	for i := 0; i+1 < len(pairs); i += 2 {
		headers = append(append(headers, byte(len(pairs[i]))), pairs[i]...)
		headers = binary.BigEndian.AppendUint16(append(headers, typeString), uint16(len(pairs[i+1])))
		headers = append(headers, pairs[i+1]...)
	}
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, uint32(preludeLen+checksumLen+len(headers)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[start:]))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[start:]))
}
