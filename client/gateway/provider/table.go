package provider

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Table is one provider.
type Table struct {
	// Name is what configuration calls it: "openai".
	Name string
	// Signals say what its errors mean. The first one that fits an answer decides.
	Signals []Signal
	// Headers say what is left of its limits.
	Headers []Header
	// Counting is what it counts of a request.
	Counting Counting
	// Routes are its paths. The first one that fits decides.
	Routes []Route
	// Request is the header that names an answer in the provider's own logs.
	Request string
	// Errors is the header that has an error's code, empty where the body alone does.
	Errors string
	// Keys is what becomes of idempotency keys there.
	Keys Keys
}

// Keys is whether a provider does what comes again with the same Idempotency-Key once.
type Keys struct {
	// Honoured: it does. Nobody should count on it where that is false.
	Honoured bool
	Seen     Seen
}

// Signal is one way to say no. Everything that it names has to fit; of a list one
// is enough. Words are compared in lower case.
type Signal struct {
	// Status is the HTTP status. Within a stream, where there is none, a signal fits
	// by its words, if it has some.
	Status []int
	// Code is any of error.type, error.code, error.details.error_code and the code or
	// type of the body itself.
	Code []string
	// CodeHas is anywhere in one of those, or in the id of a quota.
	CodeHas []string
	// Begins is how the error's message begins, Says is anywhere in it. Messages quote
	// what was sent: what closes a key for everybody should not be found by Says in an
	// answer to a bad request.
	Begins, Says []string
	// Header has this value, in an answer's header.
	Header, Value string
	// When is what else has to be true.
	When Condition

	// Class is what it means, and Scope for whom, where that is known.
	Class Class
	Scope Scope
	// Dimension is what was exceeded. Empty: the message may say it.
	Dimension string
	// Advised is what to wait where the answer does not say. 0: nothing is known.
	Advised time.Duration
	// Ends is when a HardQuota ends by itself, where the message names no day.
	Ends Ending
	Seen Seen
}

// Ending is when a quota ends by itself.
type Ending int

// The endings.
const (
	// Unknown: somebody has to do something.
	Unknown Ending = iota
	// PacificDay: with the day on the west coast of the United States.
	PacificDay
	// AfterWait: when what it asks to wait is over.
	AfterWait
)

// Condition is about numbers in an answer.
type Condition int

// The conditions.
const (
	Always Condition = iota
	// NoHint: it does not ask to wait.
	NoHint
	// HintIsShort: it asks to wait two minutes at most.
	HintIsShort
	// NeverFits: the message says that more was asked for than the limit is, or
	// nothing at all is used of the limit and retries are unwanted.
	NeverFits
	// LimitIsLower: the headers have a limit of tokens that is lower than the one that
	// is configured.
	LimitIsLower
	// HintIsLong: it asks to wait an hour or more.
	HintIsLong
	// NothingGiven: the message says that the limit is 0.
	NothingGiven
)

// Header is one limit in the headers of answers. Empty names are not sent.
type Header struct {
	// Dimension is what we call it.
	Dimension string
	// Limit and Remaining are integers, Reset is a moment or a time until then.
	Limit, Remaining, Reset string
	// Rounded is to what Remaining is rounded. 0: it is exact.
	Rounded int64
	// Short: it may be about a few seconds instead of the minute that is configured.
	// It says nothing about the minute then.
	Short bool
	Seen  Seen
}

// The tables.
const (
	NameOpenAI     = "openai"
	NameAzure      = "azure"
	NameAnthropic  = "anthropic"
	NameCompatible = "compatible"
	NameGemini     = "gemini"
	NameVertex     = "vertex"
	NameBedrock    = "bedrock"
)

var tables = map[string]*Table{
	NameOpenAI: &openAI, NameAzure: &azure, NameAnthropic: &anthropic, NameCompatible: &compatible,
	NameGemini: &gemini, NameVertex: &vertex, NameBedrock: &bedrock,
}

// Named is the table of that name.
func Named(name string) (*Table, error) {
	if t, ok := tables[name]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("provider: %.64q: must be one of %q", name, Names())
}

// Names are those of all tables, sorted.
func Names() []string {
	names := make([]string, 0, len(tables))
	for name := range tables {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Check says everything that is wrong with a table: rows without a source or a
// day, signals that fit anything, counts and routes that can't be.
func (t *Table) Check() error {
	var problems []error
	add := func(what string, i int, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s[%d]: %w", t.Name, what, i, err))
		}
	}
	for i := range t.Signals {
		add("signals", i, t.Signals[i].check())
	}
	for i := range t.Headers {
		add("headers", i, t.Headers[i].check())
	}
	for i := range t.Routes {
		add("routes", i, t.Routes[i].check())
	}
	for i := range t.Counting.Counts {
		add("counts", i, t.Counting.Counts[i].check())
	}
	for i := range t.Counting.Burndown {
		add("burndown", i, t.Counting.Burndown[i].check())
	}
	add("counting", 0, t.Counting.Seen.check())
	add("keys", 0, t.Keys.Seen.check())
	if len(t.Signals) == 0 || len(t.Routes) == 0 || len(t.Counting.Counts) == 0 {
		problems = append(problems, fmt.Errorf("%s: signals, routes or counts: missing", t.Name))
	}
	return errors.Join(problems...)
}

func (s *Signal) check() error {
	switch {
	case len(s.Status) == 0 && !s.speaks() && len(s.Says) == 0 && s.Header == "":
		return errors.New("fits everything")
	case s.Class <= None || s.Class > Other:
		return fmt.Errorf("class: %d: must be from %d to %d", s.Class, None+1, Other)
	}
	return s.Seen.check()
}

func (h *Header) check() error {
	if h.Dimension == "" || h.Limit == "" && h.Remaining == "" {
		return errors.New("says nothing")
	}
	return h.Seen.check()
}
