package file

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/api/limitsfile/written"
)

// text reads a text, "" where it is absent. Problem says what is wrong with one that is
// there.
func (r *reader) text(n ast.Node, path string, problem func(string) string) string {
	if n == nil {
		return ""
	}
	s := r.Text(n, path)
	if _, is := n.(*ast.StringNode); !is {
		return ""
	}
	if said := problem(s); said != "" {
		r.FailNode(n, path, "%s", said)
	}
	return s
}

// texts reads a list of texts, none of them twice; nil where it is absent.
func (r *reader) texts(n ast.Node, path string, most int, problem func(string) string) []string {
	if n == nil {
		return nil
	}
	items := r.Items(n, path)
	if len(items) > most {
		r.FailNode(n, path, "%d, more than %d", len(items), most)
		return nil
	}
	list := make([]string, 0, len(items))
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		s := r.text(item, at, problem)
		if seen[s] && s != "" {
			r.FailNode(item, at, "%s is there twice", written.Quote(s))
		}
		seen[s] = true
		list = append(list, s)
	}
	return slices.Clip(list)
}

// number reads a whole number, 0 where it is absent.
func (r *reader) number(n ast.Node, path string, least, most int64) int64 {
	value := r.Size(n, path)
	if value == nil {
		return 0
	}
	if *value < least || *value > most {
		r.FailNode(n, path, "%d is out of range %d..%d", *value, least, most)
	}
	return *value
}

// span reads a duration from a second to most, 0 where it is absent.
func (r *reader) span(n ast.Node, path string, most time.Duration) time.Duration {
	value := r.Duration(n, path)
	if value == nil {
		return 0
	}
	if *value < time.Second || *value > most {
		r.FailNode(n, path, "%s is out of range 1s..%s", written.FormatDuration(*value), written.FormatDuration(most))
	}
	return *value
}

// bytes reads a number of bytes, 0 where it is absent.
func (r *reader) bytes(n ast.Node, path string, least, most int64) int64 {
	if n == nil {
		return 0
	}
	value, ok := strict.Value(r.Reader, n, path, bytesForm, parseBytes)
	if ok && (value < least || value > most) {
		r.FailNode(n, path, "%s is out of range %s..%s", formatBytes(value), formatBytes(least), formatBytes(most))
	}
	return value
}

const bytesForm = "a number of bytes, like 32MiB, 512KiB or 1_048_576"

var byteUnits = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// parseBytes reads "32MiB". It knows no MB: half of the people who write it mean a million.
func parseBytes(s string) (int64, string) {
	number, unit := s, int64(1)
	for _, u := range byteUnits {
		if before, is := strings.CutSuffix(s, u.name); is {
			number, unit = strings.TrimSuffix(before, " "), u.size
		}
	}
	n, problem := written.ParseSize(number)
	if problem != "" || n > (1<<62)/unit {
		return 0, written.Quote(s) + ": want " + bytesForm
	}
	return n * unit, ""
}

func formatBytes(n int64) string {
	for _, u := range byteUnits {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// orNone reads what may be the word none, which is -1.
func orNone[T ~int | ~int64](parse func(string) (T, string)) func(string) (T, string) {
	return func(s string) (T, string) {
		if s == "none" {
			return -1, ""
		}
		value, problem := parse(s)
		if problem != "" {
			problem += ", or none"
		}
		return value, problem
	}
}

// chosen reads one of some words, and is the first one's value where it is absent.
func chosen[T any](r *reader, n ast.Node, path string, words []string, values ...T) T {
	if n == nil {
		return values[0]
	}
	value, _ := strict.Value(r.Reader, n, path, strings.Join(words, " or "), func(s string) (T, string) {
		if i := slices.Index(words, s); i >= 0 {
			return values[i], ""
		}
		return values[0], written.Quote(s) + ": want one of " + strings.Join(words, ", ")
	})
	return value
}

// addressProblem is what is wrong with host:port.
func addressProblem(s string) string {
	u, err := url.Parse("tcp://" + s)
	if err != nil || u.Host != s || u.Port() == "" {
		return written.Quote(s) + " is not host:port"
	}
	if _, err := strconv.ParseUint(u.Port(), 10, 16); err != nil {
		return written.Quote(s) + " has no port between 0 and 65535"
	}
	return ""
}

func fileProblem(s string) string {
	if s == "" || strings.ContainsRune(s, 0) {
		return written.Quote(s) + " is no name of a file"
	}
	return ""
}

// secretMax is the longest secret, in bytes.
const secretMax = 4096

// secretFile reads the lines of a file with secrets. What is wrong with one is said without
// it.
func (r *reader) secretFile(n ast.Node, path string) []string {
	name := r.text(n, path, fileProblem)
	if name == "" {
		return nil
	}
	data, err := r.secrets.ReadFile(name)
	if err != nil {
		r.FailNode(n, path, "%v", err)
		return nil
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		r.FailNode(n, path, "%s is empty", written.Quote(name))
	}
	for i, line := range lines {
		if problem := secretProblem(line); problem != "" {
			r.FailNode(n, path, "%s, line %d: %s", written.Quote(name), i+1, problem)
		}
	}
	return lines
}

// secretProblem is what is wrong with a secret that a header has to hold.
func secretProblem(s string) string {
	odd := func(c rune) bool { return c <= ' ' || c > '~' }
	switch {
	case s == "":
		return "it is empty"
	case len(s) > secretMax:
		return fmt.Sprintf("it has %d bytes, more than %d", len(s), secretMax)
	case strings.ContainsFunc(s, odd):
		return "it has spaces or characters that are no printable ASCII"
	}
	return ""
}
