package written

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// quoteMax bounds how much of a value an error repeats, in bytes.
const quoteMax = 128

// Quote shows a value of somebody else's in an error or a log line: quoted, so
// that it can't break the line, and cut, so that it can't flood it.
func Quote(s string) string {
	if len(s) <= quoteMax {
		return fmt.Sprintf("%q", s)
	}
	cut := quoteMax
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q…", s[:cut])
}

// plainWord matches texts that no reader of YAML takes for anything else.
var plainWord = regexp.MustCompile(`^[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*$`)

// reserved are words that some version of YAML takes for something else.
var reserved = map[string]bool{
	"true": true, "false": true, "null": true, "yes": true, "no": true, "on": true, "off": true, "y": true, "n": true,
}

// Word writes a text, in quotes where it needs them. JSON's quoting is also
// YAML's.
func Word(s string) string {
	if plainWord.MatchString(s) && !reserved[s] {
		return s
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	// A string always encodes.
	_ = encoder.Encode(s)
	return strings.TrimSpace(out.String())
}

// Words are the values of an enum as the file calls them, in the order in which
// errors list them.
type Words[T ~int32] []struct {
	Name  string
	Value T
}

// Name is a value as the file calls it, empty for what is none.
func (w Words[T]) Name(value T) string {
	for _, one := range w {
		if one.Value == value {
			return one.Name
		}
	}
	return ""
}

// Parse is the inverse.
func (w Words[T]) Parse(s string) (T, string) {
	names := make([]string, len(w))
	for i, one := range w {
		if one.Name == s {
			return one.Value, ""
		}
		names[i] = one.Name
	}
	return 0, Quote(s) + ": want one of " + strings.Join(names, ", ")
}
