package lineage

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// What names may look like, as error messages say it.
const (
	namePattern = "[a-z0-9][a-z0-9_.-]{0,62}"
	wordPattern = "[a-z][a-z0-9_]{0,62}"
	zonePattern = "a name of 1 to 64 bytes as Europe/Berlin"
	textPattern = "valid UTF-8 without control characters"
)

// IsName says whether a limit or a retry budget may be called so. There is no
// slash in it, so that the first slash splits limit and key.
func IsName(name string) bool {
	if len(name) < 1 || len(name) > maxName || !lower(name[0]) && !digit(name[0]) {
		return false
	}
	for i := 1; i < len(name); i++ {
		if c := name[i]; !lower(c) && !digit(c) && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// IsWord says whether a dimension or a class may be called so.
func IsWord(name string) bool {
	if len(name) < 1 || len(name) > maxName || !lower(name[0]) {
		return false
	}
	for i := 1; i < len(name); i++ {
		if c := name[i]; !lower(c) && !digit(c) && c != '_' {
			return false
		}
	}
	return true
}

// isZone says whether a time zone may be called so. Whether there is one of the
// name is not known here: the leader looks it up.
func isZone(name string) bool {
	if len(name) < 1 || len(name) > maxZone || name[0] == '/' || strings.Contains(name, "..") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !lower(c) && !digit(c) && (c < 'A' || c > 'Z') && !strings.ContainsRune("_/+-", rune(c)) {
			return false
		}
	}
	return true
}

// isText says that text has at most so many bytes, of valid UTF-8 without control
// characters.
func isText(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func lower(c byte) bool { return c >= 'a' && c <= 'z' }
func digit(c byte) bool { return c >= '0' && c <= '9' }

// clip bounds what an error message repeats.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
