package scan

import (
	"unicode/utf16"
	"unicode/utf8"
)

// inString reads a byte of a string that does not stand for itself.
func (s *Scanner) inString(c byte) {
	switch c {
	case '\\':
		s.state = inEscape
	case '"':
		s.flushHalf()
		s.endString()
	default:
		s.fail(ErrSyntax)
	}
}

func (s *Scanner) endString() {
	if !s.naming {
		s.over(String)
		return
	}
	s.naming, s.state = false, wantColon
	s.word = 0
	if s.keyLen <= KeyMax {
		s.word = s.words[string(s.key[:s.keyLen])]
	}
}

// escapes are the bytes that those after a backslash stand for.
var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

func (s *Scanner) escape(c byte) {
	if c == 'u' {
		s.unit, s.digits, s.state = 0, 0, inUnicode
		return
	}
	if escapes[c] == 0 {
		s.fail(ErrSyntax)
		return
	}
	s.flushHalf()
	s.state = inString
	s.token[0] = escapes[c]
	s.text(s.token[:1])
}

func (s *Scanner) unicode(c byte) {
	digit, ok := hex(c)
	if !ok {
		s.fail(ErrSyntax)
		return
	}
	s.unit = s.unit<<4 | digit
	if s.digits++; s.digits < 4 {
		return
	}
	s.state = inString
	if s.waiting != 0 {
		if r := utf16.DecodeRune(s.waiting, s.unit); r != utf8.RuneError {
			s.waiting = 0
			s.rune(r)
			return
		}
		s.flushHalf()
	}
	if s.unit >= 0xD800 && s.unit < 0xDC00 {
		s.waiting = s.unit
		return
	}
	s.rune(s.unit)
}

// flushHalf tells of the first half of a pair whose second half did not follow.
func (s *Scanner) flushHalf() {
	if s.waiting != 0 {
		s.waiting = 0
		s.rune(utf8.RuneError)
	}
}

// rune tells of one. Half of a pair becomes the replacement character, as
// encoding/json has it.
func (s *Scanner) rune(r rune) {
	s.text(utf8.AppendRune(s.token[:0], r))
}

func hex(c byte) (rune, bool) {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0'), true
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10, true
	default:
		return 0, false
	}
}
