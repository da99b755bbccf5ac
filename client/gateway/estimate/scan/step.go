package scan

// number is where in a number one is.
type number uint8

const (
	afterMinus number = iota
	afterZero
	inWhole
	afterPoint
	inFraction
	afterE
	afterSign
	inExponent
)

// step reads one byte. It is false where that byte was not read since it ended a number.
func (s *Scanner) step(c byte) bool {
	switch s.state {
	case inString:
		s.inString(c)
	case inEscape:
		s.escape(c)
	case inUnicode:
		s.unicode(c)
	case inNumber:
		return s.inNumber(c)
	case inLiteral:
		s.inLiteral(c)
	default:
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			s.between(c)
		}
	}
	return true
}

// between reads a byte that stands between values.
func (s *Scanner) between(c byte) {
	switch {
	case s.state == wantFirst && c == ']', s.state == wantFirstName && c == '}':
		s.leave()
	case s.state == wantValue, s.state == wantFirst:
		s.value(c)
	case (s.state == wantName || s.state == wantFirstName) && c == '"':
		s.naming, s.keyLen, s.state = true, 0, inString
	case s.state == wantColon && c == ':':
		s.state = wantValue
	case s.state == wantComma:
		s.comma(c)
	default:
		s.fail(ErrSyntax)
	}
}

func (s *Scanner) comma(c byte) {
	array := s.frames[len(s.frames)-1].array
	switch {
	case c == ',' && array:
		s.state, s.word = wantValue, Element
	case c == ',':
		s.state = wantName
	case c == ']' && array, c == '}' && !array:
		s.leave()
	default:
		s.fail(ErrSyntax)
	}
}

// value begins one.
func (s *Scanner) value(c byte) {
	s.begin = s.offset
	switch c {
	case '{':
		s.enter(Object)
	case '[':
		s.enter(Array)
	case '"':
		s.kind, s.state = String, inString
		s.visit.Begin(String)
	case 't':
		s.beginLiteral(Bool, "true")
	case 'f':
		s.beginLiteral(Bool, "false")
	case 'n':
		s.beginLiteral(Null, "null")
	default:
		s.beginNumber(c)
	}
}

func (s *Scanner) enter(kind Kind) {
	if len(s.frames) == DepthMax {
		s.fail(ErrDepth)
		return
	}
	s.visit.Begin(kind)
	s.frames = append(s.frames, frame{array: kind == Array, word: s.word})
	s.word, s.state = Element, wantFirst
	if kind == Object {
		s.word, s.state = 0, wantFirstName
	}
}

func (s *Scanner) leave() {
	last := s.frames[len(s.frames)-1]
	s.frames = s.frames[:len(s.frames)-1]
	s.word = last.word
	kind := Object
	if last.array {
		kind = Array
	}
	s.over(kind)
}

// over says that a value is over.
func (s *Scanner) over(kind Kind) {
	s.visit.End(kind)
	s.state = wantComma
	if len(s.frames) == 0 {
		s.state = wantNothing
	}
}

func (s *Scanner) beginLiteral(kind Kind, literal string) {
	s.kind, s.literal, s.tokened, s.state = kind, literal, 1, inLiteral
	s.visit.Begin(kind)
}

func (s *Scanner) inLiteral(c byte) {
	if c != s.literal[s.tokened] {
		s.fail(ErrSyntax)
		return
	}
	s.tokened++
	if s.tokened == len(s.literal) {
		s.visit.Scalar(append(s.token[:0], s.literal...))
		s.over(s.kind)
	}
}

func (s *Scanner) beginNumber(c byte) {
	switch {
	case c == '-':
		s.number = afterMinus
	case c == '0':
		s.number = afterZero
	case c >= '1' && c <= '9':
		s.number = inWhole
	default:
		s.fail(ErrSyntax)
		return
	}
	s.token[0], s.tokened, s.state = c, 1, inNumber
	s.visit.Begin(Number)
}

// inNumber is false where c does not belong to the number any more.
func (s *Scanner) inNumber(c byte) bool {
	next, ok := s.number.then(c)
	if !ok {
		s.endNumber()
		return s.err != nil
	}
	if s.tokened == NumberMax {
		s.fail(ErrNumber)
		return true
	}
	s.token[s.tokened] = c
	s.tokened++
	s.number = next
	return true
}

func (s *Scanner) endNumber() {
	switch s.number {
	case afterZero, inWhole, inFraction, inExponent:
		s.visit.Scalar(s.token[:s.tokened])
		s.over(Number)
	default:
		s.fail(ErrSyntax)
	}
}

// then is where one is after another byte of the number.
func (n number) then(c byte) (number, bool) {
	digit := c >= '0' && c <= '9'
	switch {
	case digit && n == afterMinus && c == '0':
		return afterZero, true
	case digit && (n == afterMinus || n == inWhole):
		return inWhole, true
	case digit && (n == afterPoint || n == inFraction):
		return inFraction, true
	case digit && (n == afterE || n == afterSign || n == inExponent):
		return inExponent, true
	case c == '.' && (n == afterZero || n == inWhole):
		return afterPoint, true
	case (c == 'e' || c == 'E') && (n == afterZero || n == inWhole || n == inFraction):
		return afterE, true
	case (c == '+' || c == '-') && n == afterE:
		return afterSign, true
	default:
		return n, false
	}
}
