// Package names checks what a request names, by the bounds of the protocol. A
// client checks them itself because, while it decides alone, it has to refuse the
// same that a node refuses.
//
// A problem is the empty string where there is none; else it names the value and
// its bound.
package names

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds, in bytes.
const (
	ClientMax = 256
	keyMax    = 512
	valueMax  = 256
	nameMax   = 63
)

// ClientProblem is what is wrong with the name of a client, which may be empty.
func ClientProblem(s string) string { return textProblem(s, ClientMax) }

// KeyProblem is what is wrong with a key, which may be empty.
func KeyProblem(s string) string { return textProblem(s, keyMax) }

// ValueProblem is what is wrong with the value of an attribute.
func ValueProblem(s string) string {
	if s == "" {
		return fmt.Sprintf("missing: 1 to %d bytes", valueMax)
	}
	return textProblem(s, valueMax)
}

func textProblem(s string, most int) string {
	if len(s) > most || !utf8.ValidString(s) || strings.IndexFunc(s, unicode.IsControl) >= 0 {
		return fmt.Sprintf("%.80q is not 1 to %d bytes of UTF-8 without control characters", s, most)
	}
	return ""
}

// LimitProblem is what is wrong with the name of a limit.
func LimitProblem(s string) string {
	return nameProblem(s, func(r rune, first bool) bool {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || !first && (r == '_' || r == '.' || r == '-')
	})
}

// DimensionProblem is what is wrong with the name of a dimension or a class.
func DimensionProblem(s string) string {
	return nameProblem(s, func(r rune, first bool) bool {
		return r >= 'a' && r <= 'z' || !first && (r == '_' || r >= '0' && r <= '9')
	})
}

func nameProblem(s string, legal func(r rune, first bool) bool) string {
	if s == "" || len(s) > nameMax {
		return fmt.Sprintf("%.80q is not 1 to %d characters", s, nameMax)
	}
	for i, r := range s {
		if !legal(r, i == 0) {
			return fmt.Sprintf("%.80q may not have %q there", s, r)
		}
	}
	return ""
}

// IsLeaseID says whether s is 32 lower-case hex digits.
func IsLeaseID(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}
