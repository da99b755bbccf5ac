// Package doctor examines a limits file for what goes wrong later: no headroom, numbers
// that nobody has looked up for long, callers that come back in step or try again
// at every layer. It is pure: the day is an argument.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
)

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	// Critical is what turns a refusal into a storm, or a file that is refused.
	Critical Severity = "critical"
	// Warning is what costs something once a limit is reached.
	Warning Severity = "warning"
	// Note is what a person should know of.
	Note Severity = "note"
)

// Severities are all of them, the worst first.
var Severities = []Severity{Critical, Warning, Note}

// Code names a kind of finding. Scripts rely on it.
type Code string

// The codes.
const (
	Invalid         Code = "invalid"
	SharesOver      Code = "shares-over"
	SharesLeft      Code = "shares-left"
	FallbackShares  Code = "fallback-shares"
	NoHeadroom      Code = "no-headroom"
	SourceMissing   Code = "source-missing"
	SourceStale     Code = "source-stale"
	SourceAhead     Code = "source-ahead"
	NoDelay         Code = "no-delay"
	FixedDelay      Code = "fixed-delay"
	NoJitter        Code = "no-jitter"
	StackedRetries  Code = "stacked-retries"
	HintsIgnored    Code = "hints-ignored"
	FallbackAtOnce  Code = "fallback-at-once"
	NoDedupe        Code = "no-dedupe"
	OnlyErrors      Code = "only-provider-errors"
	QueueNotWatched Code = "queue-not-watched"
)

// Finding is one thing that was found.
type Finding struct {
	Code     Code
	Severity Severity
	// Line and Column count from 1; Field is what the file calls the place, "" where
	// it is no YAML.
	Line, Column int
	Field        string
	// What is wrong, with the value, and what to do about it. Both are one line.
	What, Do string
}

// StaleAfter is how many days a look at a provider's numbers is good for.
const StaleAfter = 90

// Options are what is known beside the file.
type Options struct {
	// Now is the day on which it is examined.
	Now time.Time
	// ErrorP99 is the measured error of estimates, in hundredths of a percent. Nil:
	// nobody has measured it.
	ErrorP99 *int64
}

// Examine returns what was found, in the order of the file.
func Examine(file *limitsfile.File, o Options) ([]Finding, error) {
	all, err := limitsfile.ResolveAll(file.Request)
	if err != nil {
		return nil, fmt.Errorf("resolve the limits: %w", err)
	}
	e := &examination{file: file, options: o}
	for i, l := range all.GetLimits() {
		e.limit(fmt.Sprintf("limits[%d]", i), l)
	}
	for i := range file.Clients {
		e.client(fmt.Sprintf("clients[%d]", i), &file.Clients[i])
	}
	return sorted(e.found), nil
}

// sharesOver ends the mistake of a share that is one too many: others of a share are
// mended another way.
const sharesOver = "which is more than 100%"

// Refused are the findings of a file that can't be read: each of its mistakes.
func Refused(wrong limitsfile.SourceErrors) []Finding {
	found := make([]Finding, 0, len(wrong))
	for _, one := range wrong {
		f := Finding{
			Code: Invalid, Severity: Critical, Line: one.Line, Column: one.Column, Field: one.Field,
			What: one.Problem, Do: "mend it: a file with a mistake is not applied at all",
		}
		if strings.HasSuffix(one.Field, ".share") && strings.HasSuffix(one.Problem, sharesOver) {
			f.Code, f.Do = SharesOver, "make the shares 100% together or less: none can be guaranteed what another has"
		}
		found = append(found, f)
	}
	return sorted(found)
}

func sorted(found []Finding) []Finding {
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Code, b.Code))
	})
	return found
}

// examination collects what is found in one file.
type examination struct {
	file    *limitsfile.File
	options Options
	found   []Finding
}

// kind is what all findings of one kind share.
type kind struct {
	code     Code
	severity Severity
	do       string
}

// add adds a finding at a field of the file.
func (e *examination) add(k kind, field, what string, values ...any) {
	line, column := e.file.Place(field)
	e.found = append(e.found, Finding{
		Code: k.code, Severity: k.severity, Line: line, Column: column, Field: field,
		What: fmt.Sprintf(what, values...), Do: k.do,
	})
}
