// Package exit turns the outcome of a command into an exit code and one line.
package exit

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The exit codes. Scripts rely on them.
const (
	// Yes: the answer is yes, or it is done.
	Yes = 0
	// Failed: the question was not answered.
	Failed = 1
	// Usage: the command line is wrong.
	Usage = 2
	// Denied: the answer is no.
	Denied = 3
	// Removed: this node was removed from its cluster.
	Removed = 4
	// Protected: this node stopped to protect its data.
	Protected = 5
)

// Error carries an exit code. Without an error inside there is nothing to
// print: the answer on standard output has said it all.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// ErrDenied ends a command whose answer was no.
var ErrDenied = &Error{Code: Denied}

// Usagef says that the command line itself is wrong.
func Usagef(format string, args ...any) error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// Report prints an error as one line, or as one line each where several were
// joined, and returns the exit code that goes with it.
func Report(err error, stderr io.Writer) int {
	if err == nil {
		return Yes
	}
	code := Failed
	var carried *Error
	if errors.As(err, &carried) {
		code = carried.Code
		if carried.Err == nil {
			return code
		}
	}
	for _, e := range Parts(err) {
		fmt.Fprintf(stderr, "quorlease: %s\n", OneLine(e.Error()))
	}
	return code
}

// Parts splits what errors.Join joined, joins within joins too, and nothing
// else.
func Parts(err error) []error {
	var coded *Error
	if errors.As(err, &coded) && coded.Err != nil && coded.Error() == err.Error() {
		return Parts(coded.Err)
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []error{err}
	}
	all := joined.Unwrap()
	if err.Error() != errors.Join(all...).Error() {
		return []error{err}
	}
	var flat []error
	for _, one := range all {
		flat = append(flat, Parts(one)...)
	}
	return flat
}

// OneLine makes a message fit one line of a terminal whatever is in it: line
// breaks become semicolons, other unprintable characters are escaped.
func OneLine(s string) string {
	var b strings.Builder
	for _, line := range strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(Printable(line))
	}
	return b.String()
}

// Printable escapes what is not printable as Go does in quotes: control
// characters, and those that turn the text around or can't be seen. A name that
// came over the wire can't steer the terminal or pass for another.
func Printable(s string) string {
	hidden := func(r rune) bool { return !strconv.IsPrint(r) }
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
