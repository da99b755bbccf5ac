package provider

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// WaitMax is the longest wait that is passed on: what the authority takes. Longer
// ones are cut to it.
const WaitMax = 24 * time.Hour

// Wait is what an answer asks to wait.
type Wait struct {
	// Said: it says something that can be read. For may be 0 then: come at once.
	Said bool
	// For is from 0 to WaitMax.
	For time.Duration
	// From is where it said so: the header's name, or "message".
	From string
	// Garbage is how many headers said what can't be read. They are passed over.
	Garbage int
}

// waitHeaders are in the order in which they are believed: the first one that can
// be read.
var waitHeaders = []struct {
	name string
	unit time.Duration
	// date: it may be a moment instead.
	date bool
}{
	{"Retry-After-Ms", time.Millisecond, false},
	{"X-Ms-Retry-After-Ms", time.Millisecond, false},
	{"Retry-After", time.Second, true},
}

// ParseWait reads what headers ask to wait; wall is the time of day at which they
// came, for those that name a moment. One that has passed asks for no wait.
func ParseWait(header http.Header, wall time.Time) Wait {
	var w Wait
	for _, h := range waitHeaders {
		for _, value := range header[h.name] {
			value = strings.TrimSpace(value)
			wait, ok := number(value, h.unit)
			if !ok && h.date {
				wait, ok = until(value, wall)
			}
			switch {
			case !ok:
				w.Garbage++
			case !w.Said:
				w.Said, w.For, w.From = true, wait, strings.ToLower(h.name)
			}
		}
	}
	return w
}

// valueMax bounds what of a header is looked at: no number and no date is longer.
const valueMax = 64

// number reads so many units, a decimal fraction of one perhaps.
func number(value string, unit time.Duration) (time.Duration, bool) {
	if len(value) == 0 || len(value) > valueMax || strings.Trim(value, "0123456789.eE+-") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return 0, false
	}
	if n >= float64(WaitMax/unit) {
		return WaitMax, true
	}
	return time.Duration(math.Ceil(n * float64(unit))), true
}

// until reads a moment as HTTP writes them.
func until(value string, wall time.Time) (time.Duration, bool) {
	if len(value) > valueMax {
		return 0, false
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(0, at.Sub(wall)), WaitMax), true
}

// again is how messages ask to wait: "Please try again in 1m2.5s", "retry after 22
// seconds".
var again = regexp.MustCompile(
	`(?:try again|retry) (?:in|after) (\d[\d.]*(?:ms|[smh][\d.hms]*)?)(?: ?(milliseconds?|seconds?|minutes?|hours?))?`)

var units = map[string]time.Duration{
	"": time.Second, "millisecond": time.Millisecond, "second": time.Second, "minute": time.Minute, "hour": time.Hour,
}

// waitIn reads what a message in lower case asks to wait.
func waitIn(message string) (time.Duration, bool) {
	found := again.FindStringSubmatch(message)
	if found == nil {
		return 0, false
	}
	span := strings.TrimRight(found[1], ".")
	if wait, err := time.ParseDuration(span); err == nil {
		return min(max(0, wait), WaitMax), true
	}
	return number(span, units[strings.TrimSuffix(found[2], "s")])
}

// day of a message, with the time of day perhaps.
var access = regexp.MustCompile(`\b(\d{4}-\d\d-\d\d)(?:(?: at |t| )(\d\d:\d\d))?`)

// resumeMax is how far off the end of a spend cap may be to be believed.
const resumeMax = 400 * 24 * time.Hour

// resumes is the moment that a message in lower case names, in UTC, if it is to
// come. Zero: none.
func resumes(message string, wall time.Time) time.Time {
	found := access.FindStringSubmatch(message)
	if found == nil {
		return time.Time{}
	}
	clock := found[2]
	if clock == "" {
		clock = "00:00"
	}
	at, err := time.Parse(day+" 15:04", found[1]+" "+clock)
	if ahead := at.Sub(wall); err != nil || ahead <= 0 || ahead > resumeMax {
		return time.Time{}
	}
	return at
}
