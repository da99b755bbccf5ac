package stream

import "bytes"

// Frame is one event of a stream, or what else stands between two: a comment, an empty
// line. Its slices are valid until the next frame is read.
type Frame struct {
	// Raw is the frame as it came, with what ends it.
	Raw []byte
	// Event is the event's type, empty where none is given: a message.
	Event string
	// Data is what its data lines say, with a line feed between two. It is nil where there
	// is none, which is no event: nobody is told.
	Data []byte
	// Whole is false of a piece of a frame that was longer than Options allow, and of what
	// stands at the end of a stream without an empty line after it. Neither is looked at,
	// and the latter is no event.
	Whole bool
	// Fault: it is an error by how it came, and Event is its code.
	Fault bool

	// dataAt is where in Raw all of Data stands, -1 where it was put together of lines.
	dataAt int
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

// parse reads the fields of a whole frame. Lines of data are put together in scratch,
// which is returned, perhaps longer.
func (f *Frame) parse(first bool, scratch []byte) []byte {
	f.dataAt = -1
	at := 0
	if first && bytes.HasPrefix(f.Raw, byteOrderMark) {
		at = len(byteOrderMark)
	}
	joined := scratch[:0]
	lines := 0
	for at < len(f.Raw) {
		length := bytes.IndexAny(f.Raw[at:], "\r\n")
		if length < 0 {
			length = len(f.Raw) - at
		}
		name, value := field(f.Raw[at : at+length])
		switch string(name) {
		case "event":
			f.Event = string(value)
		case "data":
			if lines++; lines == 1 {
				f.Data, f.dataAt = value, at+length-len(value)
				break
			}
			if lines == 2 {
				joined = append(joined, f.Data...)
			}
			joined = append(append(joined, '\n'), value...)
		}
		at += length + 1
	}
	if lines > 1 {
		f.Data, f.dataAt = joined, -1
	}
	if lines > 0 && f.Data == nil {
		f.Data = []byte{}
	}
	return joined
}

// field is the name and the value of a line. A comment has no name.
func field(line []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(line, []byte(":"))
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return name, value
}

// lines finds where frames end, byte by byte, so that it does not matter where reads do.
type lines struct {
	// begun: the present line is not empty, and is a comment or not.
	begun, comment bool
	// fields: the present frame has lines that are no comments.
	fields bool
	// afterCR: a line feed still belongs to the line before.
	afterCR bool
	// marked is how much of the byte order mark was read, and past that it is no beginning
	// any more.
	marked  int
	started bool
}

// ends says whether a frame ends with c: an empty line does that, and the end of a comment
// where no fields stand before it. Servers send comments to keep a connection open, and
// some send no empty line after them.
func (l *lines) ends(c byte) bool {
	if l.afterCR {
		l.afterCR = false
		if c == '\n' {
			return false
		}
	}
	if !l.started {
		if l.marked < len(byteOrderMark) && c == byteOrderMark[l.marked] {
			l.marked++
			return false
		}
		l.started = true
		if l.marked > 0 && l.marked < len(byteOrderMark) {
			l.begun, l.fields = true, true
		}
	}
	if c != '\r' && c != '\n' {
		if !l.begun {
			l.begun, l.comment = true, c == ':'
			l.fields = l.fields || !l.comment
		}
		return false
	}
	over := !l.begun || l.comment && !l.fields
	l.begun, l.comment, l.afterCR = false, false, c == '\r'
	if over {
		l.fields = false
	}
	return over
}
