package scan

import (
	"errors"
	"fmt"
)

// The bounds of what is read.
const (
	// DepthMax is how deep objects and arrays may lie in one another. Schemas of tools
	// have been seen with 20.
	DepthMax = 128
	// NumberMax is how many bytes a number may have.
	NumberMax = 64
	// KeyMax is how many bytes of a member's name are compared with the words. Longer
	// names are words of nobody.
	KeyMax = 64
)

// What a body can be wrong in. They are wrapped with the place.
var (
	ErrSyntax = errors.New("not JSON")
	ErrDepth  = fmt.Errorf("deeper than %d", DepthMax)
	ErrNumber = fmt.Errorf("number longer than %d bytes", NumberMax)
	ErrCut    = errors.New("JSON ends early")
)

// Word is a member's name that somebody asked for. 0 is any other.
type Word uint8

// Element is the word of what stands in an array: no name.
const Element Word = 255

// Kind is what a value is.
type Kind uint8

// The kinds of values.
const (
	Object Kind = iota
	Array
	String
	Number
	Bool
	Null
)

// Visitor is told what is found, in order. Slices are only valid during the call.
type Visitor interface {
	// Begin says that a value begins: the next thing told is inside it, or it itself.
	Begin(kind Kind)
	// Text is a piece of a string, its escapes resolved. A string of nothing has none.
	Text(piece []byte)
	// Scalar is a number, true, false or null, as it is written.
	Scalar(text []byte)
	// Name is a piece of a member's name, before its value begins.
	Name(piece []byte)
	// End says that a value is over.
	End(kind Kind)
}

type state uint8

const (
	wantValue state = iota
	wantFirst       // a value, or ] of an array of nothing
	wantName
	wantFirstName // a name, or } of an object of nothing
	wantColon
	wantComma
	inString
	inEscape
	inUnicode
	inNumber
	inLiteral
	wantNothing
	failed
)

type frame struct {
	array bool
	word  Word
}

// Scanner reads one value. It is made by New.
type Scanner struct {
	words map[string]Word
	visit Visitor

	state  state
	offset int64
	begin  int64
	err    error
	frames []frame
	// word is that of the value to come, or of the one that is read.
	word Word
	// naming: the string that is read is a member's name, whose beginning is in key.
	naming bool
	key    [KeyMax + 1]byte
	keyLen int

	number  number
	token   [NumberMax]byte
	tokened int
	literal string
	kind    Kind

	unit    rune
	digits  int
	waiting rune // the first half of a pair of \u escapes
}

// New returns a scanner that tells visit what it finds and knows words by their names.
// No word is 0 or Element.
func New(words map[string]Word, visit Visitor) *Scanner {
	s := &Scanner{words: words, visit: visit, frames: make([]frame, 0, 16)}
	s.Reset()
	return s
}

// Reset makes it read another value.
func (s *Scanner) Reset() {
	s.state, s.offset, s.begin, s.err = wantValue, 0, 0, nil
	s.frames, s.word, s.naming, s.keyLen, s.waiting = s.frames[:0], 0, false, 0, 0
}

// Depth is how many objects and arrays the present value lies in.
func (s *Scanner) Depth() int { return len(s.frames) }

// Word is the name of the present value, and At(i) that of what it lies in, the outermost
// first: At(0) has none. Elements of arrays are called Element.
func (s *Scanner) Word() Word { return s.word }

// At is the word of the i-th of what the present value lies in, 0 where there is none.
func (s *Scanner) At(i int) Word {
	if i < 0 || i >= len(s.frames) {
		return 0
	}
	return s.frames[i].word
}

// Is says whether the present value is reached by these names from the outermost value.
func (s *Scanner) Is(path ...Word) bool {
	if len(path) != len(s.frames) || len(path) == 0 {
		return false
	}
	for i, word := range path[:len(path)-1] {
		if s.frames[i+1].word != word {
			return false
		}
	}
	return s.word == path[len(path)-1]
}

// Offset is how many bytes were read before the present one, counting that during Begin
// of an object, array or string and during End of anything but a number.
func (s *Scanner) Offset() int64 { return s.offset }

// Begun is the offset of the first byte of the value that began last.
func (s *Scanner) Begun() int64 { return s.begin }

// Err is what was wrong, nil where nothing was so far.
func (s *Scanner) Err() error { return s.err }

// Write reads on. After an error it reads nothing more.
func (s *Scanner) Write(p []byte) (int, error) {
	for i := 0; i < len(p); {
		if s.err != nil {
			return i, s.err
		}
		if s.state == inString {
			if n := plain(p[i:]); n > 0 {
				s.flushHalf()
				s.text(p[i : i+n])
				s.offset += int64(n)
				i += n
				continue
			}
		}
		if !s.step(p[i]) {
			continue // The byte ended a number, and is read again.
		}
		s.offset++
		i++
	}
	return len(p), s.err
}

// Close says that there is no more. It is an error where the value is not over.
func (s *Scanner) Close() error {
	if s.err != nil {
		return s.err
	}
	if s.state == inNumber && len(s.frames) == 0 {
		s.endNumber()
	}
	if s.err == nil && s.state != wantNothing {
		s.fail(ErrCut)
	}
	return s.err
}

// plain is how many bytes of a string stand for themselves.
func plain(p []byte) int {
	for i, c := range p {
		if c == '"' || c == '\\' || c < 0x20 {
			return i
		}
	}
	return len(p)
}

func (s *Scanner) fail(err error) {
	s.err = fmt.Errorf("%w at byte %d", err, s.offset)
	s.state = failed
}

// text tells of a piece of the string that is read.
func (s *Scanner) text(piece []byte) {
	if !s.naming {
		s.visit.Text(piece)
		return
	}
	s.keyLen += copy(s.key[s.keyLen:], piece)
	s.visit.Name(piece)
}
