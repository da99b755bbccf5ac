package canon

import (
	"bytes"
	"crypto/sha256"
	"slices"
)

// The canonical form is a prefix code: each value begins with its tag and says where
// it ends, so that two bodies have the same form only if they mean the same.
const (
	tagBytes  = 'B'
	tagJoin   = 'J'
	tagValue  = 'V'
	tagDigest = 'H'
	tagString = 's'
	tagNumber = 'd'
	tagSpelt  = 'r'
	tagNull   = 'n'
	tagTrue   = 't'
	tagFalse  = 'f'
)

// inlineMax is up to which length an object or array stands in its parent as it is. A
// longer one stands there as its hash: each byte is then moved and hashed once,
// however deep it is.
const inlineMax = 64

// member is one name and value in scan.out: from is where it begins, value where its
// value does, and to where it ends.
type member struct {
	from, value, to int
	volatile        bool
}

// body reads all of in. It is false where in is not one value of JSON within the
// bounds.
func (s *scan) body(h *Hasher, in []byte) (Sums, bool) {
	s.in, s.at, s.out, s.members, s.depthMax = in, 0, s.out[:0], s.members[:0], h.depthMax
	s.space()
	s.out = append(s.out, tagValue)
	if s.peek() != '{' {
		if !s.value(0) || !s.ended() {
			return Sums{}, false
		}
		s.mac.Reset()
		s.mac.Write(s.out)
		sum := s.sum()
		return Sums{Work: sum, Exact: sum, JSON: true}, true
	}
	if !s.listed(1, h.volatile) || !s.ended() {
		return Sums{}, false
	}
	sums := Sums{JSON: true}
	dropped := slices.ContainsFunc(s.members, func(m member) bool { return m.volatile })
	sums.Exact = s.root(true)
	sums.Work = sums.Exact
	if dropped {
		sums.Work = s.root(false)
	}
	return sums, true
}

// root hashes the members of the object that the body is, in order.
func (s *scan) root(all bool) Sum {
	s.mac.Reset()
	s.mac.Write(s.out[:1])
	for _, m := range s.members {
		if all || !m.volatile {
			s.mac.Write(s.out[m.from:m.to])
		}
	}
	return s.sum()
}

func (s *scan) ended() bool {
	s.space()
	return s.at == len(s.in)
}

func (s *scan) space() {
	for s.at < len(s.in) {
		switch s.in[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek is the byte that is read next, 0 at the end: no value begins with it.
func (s *scan) peek() byte {
	if s.at < len(s.in) {
		return s.in[s.at]
	}
	return 0
}

// take reads one byte if it is b.
func (s *scan) take(b byte) bool {
	if s.peek() != b {
		return false
	}
	s.at++
	return true
}

func (s *scan) literal(word string, tag byte) bool {
	if !bytes.HasPrefix(s.in[s.at:], []byte(word)) {
		return false
	}
	s.at += len(word)
	s.out = append(s.out, tag)
	return true
}

// value reads one value that is depth deep. White space before it has been read.
func (s *scan) value(depth int) bool {
	switch s.peek() {
	case '{':
		return s.object(depth + 1)
	case '[':
		return s.array(depth + 1)
	case '"':
		return s.str()
	case 'n':
		return s.literal("null", tagNull)
	case 't':
		return s.literal("true", tagTrue)
	case 'f':
		return s.literal("false", tagFalse)
	default:
		return s.number()
	}
}

func (s *scan) array(depth int) bool {
	if depth > s.depthMax {
		return false
	}
	start := len(s.out)
	s.at++
	s.out = append(s.out, '[')
	s.space()
	if !s.take(']') {
		for {
			if !s.value(depth) {
				return false
			}
			s.space()
			if s.take(']') {
				break
			}
			if !s.take(',') {
				return false
			}
			s.space()
		}
	}
	s.out = append(s.out, ']')
	s.fold(start)
	return true
}

func (s *scan) object(depth int) bool {
	start, first := len(s.out), len(s.members)
	s.out = append(s.out, '{')
	if !s.listed(depth, nil) {
		return false
	}
	s.arrange(s.members[first:], start+1)
	s.members = s.members[:first]
	s.out = append(s.out, '}')
	s.fold(start)
	return true
}

// listed reads an object. Its members are then the last of s.members, in the order of
// their names; of one name, in the order in which they came: which of them counts is
// for the reader to say.
func (s *scan) listed(depth int, volatile map[string]struct{}) bool {
	if depth > s.depthMax {
		return false
	}
	first := len(s.members)
	s.at++
	s.space()
	if !s.take('}') {
		for {
			if len(s.members) == membersMax || !s.member(depth, volatile) {
				return false
			}
			s.space()
			if s.take('}') {
				break
			}
			if !s.take(',') {
				return false
			}
			s.space()
		}
	}
	list := s.members[first:]
	byName := func(a, b member) int {
		return bytes.Compare(s.out[a.from:a.value], s.out[b.from:b.value])
	}
	if !slices.IsSortedFunc(list, byName) {
		slices.SortStableFunc(list, byName)
	}
	return true
}

func (s *scan) member(depth int, volatile map[string]struct{}) bool {
	m := member{from: len(s.out)}
	if s.peek() != '"' {
		return false
	}
	name, ok := s.quoted()
	if !ok {
		return false
	}
	_, m.volatile = volatile[string(name)]
	s.appendText(tagString, name)
	s.space()
	if !s.take(':') {
		return false
	}
	s.space()
	m.value = len(s.out)
	if !s.value(depth) {
		return false
	}
	m.to = len(s.out)
	s.members = append(s.members, m)
	return true
}

// arrange puts the bytes of members, which begin at start, in the members' order.
func (s *scan) arrange(list []member, start int) {
	at := start
	for _, m := range list {
		if m.from != at {
			s.spare = s.spare[:0]
			for _, m := range list {
				s.spare = append(s.spare, s.out[m.from:m.to]...)
			}
			copy(s.out[start:], s.spare)
			return
		}
		at = m.to
	}
}

// fold replaces what begins at start by its hash where that is shorter.
func (s *scan) fold(start int) {
	if len(s.out)-start <= inlineMax {
		return
	}
	s.digest = sha256.Sum256(s.out[start:])
	s.out = append(append(s.out[:start], tagDigest), s.digest[:]...)
}
