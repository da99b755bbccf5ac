package canon

import (
	"encoding/binary"
	"unicode/utf8"
)

// exponentMax is up to how many digits of an exponent are counted with. Numbers with
// longer ones are compared as they are spelt.
const exponentMax = 15

func (s *scan) appendText(tag byte, text []byte) {
	s.out = binary.AppendUvarint(append(s.out, tag), uint64(len(text)))
	s.out = append(s.out, text...)
}

func (s *scan) str() bool {
	text, ok := s.quoted()
	if ok {
		s.appendText(tagString, text)
	}
	return ok
}

// quoted reads a string. What it returns is overwritten by the next one.
func (s *scan) quoted() ([]byte, bool) {
	s.at++
	start, plain := s.at, true
	for s.at < len(s.in) {
		switch b := s.in[s.at]; {
		case b == '"':
			text := s.in[start:s.at]
			s.at++
			return text, plain || utf8.Valid(text)
		case b == '\\':
			return s.escaped(start)
		case b < ' ':
			return nil, false
		case b >= utf8.RuneSelf:
			plain = false
		}
		s.at++
	}
	return nil, false
}

// escaped goes on with a string that began at start where its first escape is.
func (s *scan) escaped(start int) ([]byte, bool) {
	s.text = append(s.text[:0], s.in[start:s.at]...)
	if !utf8.Valid(s.text) {
		return nil, false
	}
	for s.at < len(s.in) {
		from := s.at
		switch b := s.in[s.at]; {
		case b == '"':
			s.at++
			return s.text, true
		case b < ' ':
			return nil, false
		case b == '\\':
			if !s.escape() {
				return nil, false
			}
		case b < utf8.RuneSelf:
			s.at++
			s.text = append(s.text, b)
		default:
			r, size := utf8.DecodeRune(s.in[s.at:])
			if r == utf8.RuneError && size == 1 {
				return nil, false
			}
			s.at += size
			s.text = append(s.text, s.in[from:s.at]...)
		}
	}
	return nil, false
}

var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape reads one escape. Half of a surrogate pair is kept as the three bytes that it
// would have if it were a character: no valid UTF-8 has those.
func (s *scan) escape() bool {
	if s.at+1 >= len(s.in) {
		return false
	}
	if s.in[s.at+1] != 'u' {
		b := escapes[s.in[s.at+1]]
		if b == 0 {
			return false
		}
		s.at += 2
		s.text = append(s.text, b)
		return true
	}
	unit, ok := s.unit(s.at)
	if !ok {
		return false
	}
	s.at += 6
	if unit&^0x3ff == 0xd800 {
		if low, ok := s.unit(s.at); ok && low&^0x3ff == 0xdc00 {
			s.at += 6
			s.text = utf8.AppendRune(s.text, 0x10000+(unit&0x3ff)<<10+low&0x3ff)
			return true
		}
	}
	if unit&^0x7ff == 0xd800 {
		s.text = append(s.text, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0xbf, 0x80|byte(unit)&0x3f)
		return true
	}
	s.text = utf8.AppendRune(s.text, unit)
	return true
}

// unit is the value of the escape \uXXXX that begins at at.
func (s *scan) unit(at int) (value rune, ok bool) {
	if at+6 > len(s.in) || s.in[at] != '\\' || s.in[at+1] != 'u' {
		return 0, false
	}
	for _, b := range s.in[at+2 : at+6] {
		switch {
		case b >= '0' && b <= '9':
			value = value<<4 | rune(b-'0')
		case b >= 'a' && b <= 'f':
			value = value<<4 | rune(b-'a'+10)
		case b >= 'A' && b <= 'F':
			value = value<<4 | rune(b-'A'+10)
		default:
			return 0, false
		}
	}
	return value, true
}

// digits reads digits, and returns where they began.
func (s *scan) digits() (start int, some bool) {
	start = s.at
	for s.at < len(s.in) && s.in[s.at] >= '0' && s.in[s.at] <= '9' {
		s.at++
	}
	return start, s.at > start
}

// number reads a number by its value, exactly: 1, 1.0 and 10e-1 are one, and what
// would round to the same floating point number is not.
func (s *scan) number() bool {
	start := s.at
	negative := s.take('-')
	whole, some := s.digits()
	if !some || s.in[whole] == '0' && s.at > whole+1 {
		return false
	}
	s.text = append(s.text[:0], s.in[whole:s.at]...)
	exponent := int64(0)
	if s.take('.') {
		part, some := s.digits()
		if !some {
			return false
		}
		s.text = append(s.text, s.in[part:s.at]...)
		exponent = -int64(s.at - part)
	}
	shift, counted := int64(0), true
	if s.take('e') || s.take('E') {
		var ok bool
		if shift, counted, ok = s.exponent(); !ok {
			return false
		}
	}
	s.appendNumber(negative, exponent+shift, s.in[start:s.at], counted)
	return true
}

// exponent reads what follows the letter e. counted is false where it is too long.
func (s *scan) exponent() (value int64, counted, ok bool) {
	negative := s.take('-')
	if !negative {
		s.take('+')
	}
	start, some := s.digits()
	if !some {
		return 0, false, false
	}
	text := s.in[start:s.at]
	for len(text) > 1 && text[0] == '0' {
		text = text[1:]
	}
	if len(text) > exponentMax {
		return 0, false, true
	}
	for _, b := range text {
		value = 10*value + int64(b-'0')
	}
	if negative {
		value = -value
	}
	return value, true, true
}

// appendNumber writes the digits in s.text times 10 to the exponent.
func (s *scan) appendNumber(negative bool, exponent int64, spelt []byte, counted bool) {
	digits := s.text
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		exponent++
	}
	switch {
	case len(digits) == 0:
		// Nothing is nothing, whatever its sign and exponent.
		s.appendText(tagNumber, nil)
	case !counted:
		s.appendText(tagSpelt, spelt)
	default:
		s.appendText(tagNumber, digits)
		s.out = binary.AppendVarint(s.out, exponent)
		sign := byte('+')
		if negative {
			sign = '-'
		}
		s.out = append(s.out, sign)
	}
}
