package stream

import "bytes"

// elements finds where the elements of one array end.
type elements struct {
	depth int
	// array: it is one, and no object by itself.
	array           bool
	quoted, escaped bool
}

func (e *elements) ends(c byte) bool {
	if e.quoted {
		switch {
		case e.escaped:
			e.escaped = false
		case c == '\\':
			e.escaped = true
		case c == '"':
			e.quoted = false
		}
		return false
	}
	switch c {
	case '"':
		e.quoted = true
	case '{', '[':
		if e.depth <= 0 {
			e.depth, e.array = 0, c == '['
		}
		e.depth++
	case '}', ']':
		e.depth--
		return e.depth <= 0 || e.depth == 1 && e.array && c == '}'
	}
	return false
}

// parse leaves out what stands between two elements. What closes the array is no event.
func (e *elements) parse(f *Frame) {
	if at := bytes.IndexByte(f.Raw, '{'); at >= 0 {
		f.Data, f.dataAt = f.Raw[at:], at
	}
}

func (e *elements) lost() bool { return false }
