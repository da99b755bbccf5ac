package provider

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Answer is what a provider answered, as far as it has come. A connection that
// broke is no answer.
type Answer struct {
	Status int
	Header http.Header
	// Body is its beginning; no more than BodyMax of it is looked at. Of a stream of
	// events with a status of success it is the data of one event, the first or any later
	// one, and Event is its type (package stream).
	Body  []byte
	Event string
	// Framed: Body is an event, whatever the header says. Fault: it is an error by how it
	// came, and Event is its code.
	Framed, Fault bool
	// Wall is the time of day at which it came.
	Wall time.Time
	// Configured are the limits that it was sent under, a minute, by dimension. Empty
	// where that is not known.
	Configured map[string]int64
}

const (
	// shortHint is what a wait for a limit of a minute may be at most.
	shortHint = 2 * time.Minute
	// longHint is what nobody waits for in a queue.
	longHint = time.Hour
)

// Classify says what an answer means. The order is that of the table: first what
// can't be mistaken for anything else, money above all, then what is the provider's
// own trouble, then the rest.
func (t *Table) Classify(a Answer) Verdict {
	v := Verdict{Limits: t.ParseLimits(a.Header, a.Wall, a.Configured), Retry: shouldRetry(a.Header)}
	said, status, failed := a.words()
	if !failed {
		return v
	}
	said.add(first(a.Header, t.Errors))
	v.Wait = ParseWait(a.Header, a.Wall)
	if wait, from := said.wait(); from != "" && !v.Wait.Said {
		v.Wait.Said, v.Wait.For, v.Wait.From = true, wait, from
	}
	v.Reason = said.reason()
	v.Class = Other
	x := exam{&a, &v, said, status}
	var ends Ending
	for i := range t.Signals {
		if s := &t.Signals[i]; x.fits(s) {
			v.Class, v.Scope, v.Row, v.Dimension, ends = s.Class, s.Scope, s.Seen, s.Dimension, s.Ends
			if s.Advised > 0 && !v.Wait.Said {
				v.Wait.Said, v.Wait.For, v.Wait.From = true, s.Advised, "table"
			}
			break
		}
	}
	v.name(said.message)
	switch v.Class {
	case HardQuota:
		v.Resumes = ends.at(resumes(said.message, a.Wall), a.Wall, v.Wait)
	case Adapt:
		lower, _ := v.Limits.of(Tokens)
		v.Advertised = lower.Limit
	default:
	}
	return v
}

// at is when a quota ends: on the day that was named, or else as is known of it. Zero: nobody
// knows.
func (e Ending) at(named, wall time.Time, wait Wait) time.Time {
	switch {
	case !named.IsZero():
		return named
	case e == PacificDay:
		return midnightPacific(wall)
	case e == AfterWait && wait.Said:
		return wall.Add(wait.For)
	default:
		return time.Time{}
	}
}

// words are those of the error that an answer is, with its status: 0 where a
// stream does not say.
func (a *Answer) words() (said words, status int, failed bool) {
	switch {
	case a.Status >= 400:
		return read(a.Body), a.Status, true
	case a.Fault:
		said = read(a.Body)
		said.add(a.Event)
		return said, said.status, true
	case a.Status >= 200 && a.Status < 300 && a.isStream() && a.mayFail():
		said = read(a.Body)
		return said, said.status, said.failed || a.Event == "error" && len(a.Body) > 0
	default:
		return words{}, a.Status, false
	}
}

// mayFail is false where nothing in an event can say that it is an error: most events are none,
// and are not worth reading. What is escaped may spell anything.
func (a *Answer) mayFail() bool {
	return a.Event == "error" || bytes.Contains(a.Body, []byte("error")) || bytes.Contains(a.Body, []byte(`\u`))
}

// isStream says whether an answer is a stream of events.
func (a *Answer) isStream() bool {
	return a.Framed || strings.HasPrefix(strings.ToLower(first(a.Header, "Content-Type")), "text/event-stream")
}

func shouldRetry(header http.Header) Retry {
	switch strings.ToLower(first(header, "X-Should-Retry")) {
	case "true":
		return Yes
	case "false":
		return No
	default:
		return Unsaid
	}
}

// exam is one answer while its signal is looked for.
type exam struct {
	answer  *Answer
	verdict *Verdict
	said    words
	status  int
}

func (x *exam) fits(s *Signal) bool {
	if len(s.Status) > 0 && !slices.Contains(s.Status, x.status) && (x.status != 0 || !s.speaks()) {
		return false
	}
	if len(s.Code) > 0 && !slices.ContainsFunc(x.said.codes, func(code string) bool {
		return slices.Contains(s.Code, code)
	}) {
		return false
	}
	if len(s.CodeHas) > 0 && !slices.ContainsFunc(x.said.codes, func(code string) bool {
		return slices.ContainsFunc(s.CodeHas, func(part string) bool { return strings.Contains(code, part) })
	}) {
		return false
	}
	if len(s.Begins) > 0 && !slices.ContainsFunc(s.Begins, func(words string) bool {
		return strings.HasPrefix(x.said.message, words)
	}) {
		return false
	}
	if len(s.Says) > 0 && !slices.ContainsFunc(s.Says, func(words string) bool {
		return strings.Contains(x.said.message, words)
	}) {
		return false
	}
	if s.Header != "" && !strings.EqualFold(first(x.answer.Header, s.Header), s.Value) {
		return false
	}
	return x.holds(s.When)
}

// speaks says whether a signal can be told by its words, in a stream that has no
// status. Money can't by a word that may be anywhere.
func (s *Signal) speaks() bool {
	return len(s.Code)+len(s.CodeHas) > 0 || len(s.Begins) > 0 || len(s.Says) > 0 && s.Class != HardQuota
}

func (x *exam) holds(c Condition) bool {
	wait := x.verdict.Wait
	switch c {
	case NoHint:
		return !wait.Said
	case HintIsShort:
		return wait.Said && wait.For <= shortHint
	case HintIsLong:
		return wait.Said && wait.For >= longHint
	case NeverFits:
		return exceeds(x.said.message) || x.verdict.Retry == No && x.untouched()
	case NothingGiven:
		return limitless.MatchString(x.said.message)
	case LimitIsLower:
		advertised, _ := x.verdict.Limits.of(Tokens)
		return advertised.Limit > 0 && advertised.Limit < x.answer.Configured[Tokens]
	default:
		return true
	}
}

// untouched says whether the headers have a limit of tokens of which all is left.
func (x *exam) untouched() bool {
	seen, ok := x.verdict.Limits.of(Tokens)
	return ok && seen.Limit > 0 && seen.Remaining >= seen.Limit
}

// asked is how a message says what was too much: "Limit 30000, Requested 36278".
var asked = regexp.MustCompile(`\blimit:? (\d{1,15})\b.{0,64}\brequested:? (\d{1,15})\b`)

// limitless is how a message says that a limit gives nothing, whoever asks.
var limitless = regexp.MustCompile(`\blimit: 0\b`)

// exceeds says whether a message says that more was requested than the limit is.
func exceeds(message string) bool {
	found := asked.FindStringSubmatch(message)
	if found == nil {
		return false
	}
	limit, _ := strconv.ParseInt(found[1], 10, 64)
	requested, _ := strconv.ParseInt(found[2], 10, 64)
	return requested > limit
}

// named are the words by which messages name a dimension, the longer ones first.
var named = []struct{ words, dimension string }{
	{"input tokens per", InputTokens},
	{"output tokens per", OutputTokens},
	{"tokens per", Tokens},
	{"requests per", Requests},
	{"token rate limit", Tokens},
	{"call rate limit", Requests},
}

// scoped are the words by which messages name whom a limit is for.
var scoped = []struct {
	words string
	scope Scope
}{
	{"in project ", Project},
	{"workspace api usage", Workspace},
	{"your workspace", Workspace},
	{"in organization ", Organization},
	{"your organization", Organization},
}

// name fills in what was exceeded and for whom, where the message says so, or the
// headers of one dimension alone say that nothing is left.
func (v *Verdict) name(message string) {
	if v.Class == Other || v.Class == Overload || v.Class == HardQuota {
		return
	}
	for _, n := range named {
		if v.Dimension == "" && strings.Contains(message, n.words) {
			v.Dimension = n.dimension
			break
		}
	}
	for _, s := range scoped {
		if v.Scope == "" && strings.Contains(message, s.words) {
			v.Scope = s.scope
		}
	}
	if v.Dimension != "" {
		return
	}
	for _, seen := range v.Limits.Seen {
		switch {
		case seen.Remaining != 0:
		case v.Dimension != "":
			v.Dimension = ""
			return
		default:
			v.Dimension = seen.Dimension
		}
	}
}
