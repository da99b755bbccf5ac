package limitsfile

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quorlease/quorlease/api/limitsfile/written"
)

// Bounds of names and keys, in bytes.
const (
	NameMax   = 63
	KeyMax    = 512
	ClientMax = 256
)

// NameProblem says why s is not the name of a limit or of a retry budget; "" when
// it is: [a-z0-9][a-z0-9_.-]{0,62}. It has no slash, because the first slash
// splits a limit from its key where both are written as one.
func NameProblem(s string) string {
	if s == "" {
		return "missing"
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '_' && c != '.' && c != '-') || i == NameMax {
			return Quote(s) + " is not a name: 1 to 63 of a-z, 0-9, _, . and -, the first a letter or a digit"
		}
	}
	return ""
}

// DimensionProblem says why s is not the name of a dimension; "" when it is:
// [a-z][a-z0-9_]{0,62}.
func DimensionProblem(s string) string { return wordProblem(s, "a dimension") }

// ClassProblem is DimensionProblem for the name of a class, which looks the
// same.
func ClassProblem(s string) string { return wordProblem(s, "a class") }

func wordProblem(s, what string) string {
	if s == "" {
		return "missing"
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) || i == NameMax {
			return Quote(s) + " is not the name of " + what + ": 1 to 63 of a-z, 0-9 and _, the first a letter"
		}
	}
	return ""
}

// KeyProblem says why s is not a key; "" when it is, or when it is empty, which
// means that there is none: 1 to 512 bytes of UTF-8 without control characters.
// Keys are compared byte by byte (A22).
func KeyProblem(s string) string { return textProblem(s, KeyMax) }

// ClientProblem says why s does not name a client; "" when it does: at most 256
// bytes of UTF-8 without control characters.
func ClientProblem(s string) string { return textProblem(s, ClientMax) }

func textProblem(s string, most int) string {
	if len(s) > most {
		return fmt.Sprintf("%s has %d bytes, more than %d", Quote(s), len(s), most)
	}
	if !utf8.ValidString(s) {
		return Quote(s) + " is not valid UTF-8"
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return Quote(s) + " has a control character"
	}
	return ""
}

// Quote shows a value of somebody else's in an error or a log line: quoted, so
// that it can't break the line, and cut, so that it can't flood it.
func Quote(s string) string { return written.Quote(s) }
