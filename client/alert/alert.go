package alert

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"
)

// Severity says who has to look.
type Severity int

// The severities; the numbers are those of events in the public protocol.
const (
	// Info: nobody.
	Info Severity = 1
	// Warning: somebody, during the day.
	Warning Severity = 2
	// Critical: somebody, now.
	Critical Severity = 3
)

// String is the severity in lower case.
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	case Critical:
		return "critical"
	}
	return fmt.Sprintf("severity %d", int(s))
}

// Alert is the beginning of an incident, or its end.
type Alert struct {
	// Kind is what happened: the name of the event that began it, "QuorumLost" for
	// example. It is the same at the end.
	Kind string
	// Name is who noticed: a node's name or a client's.
	Name string
	// ID tells this incident from others of its kind and name. It is the same at
	// the end.
	ID string
	// Resolved: the incident is over.
	Resolved bool
	// Severity is that of the beginning; the one of an end is ignored.
	Severity Severity
	// Started is when the incident began; the zero time becomes the time of
	// Notify. Ended is when it was over, likewise, and zero before.
	Started, Ended time.Time
	// Text is one sentence for people.
	Text string
	// Labels say which incident it is, beside kind, name and severity: few, and
	// of few values. Those of an end are ignored.
	Labels map[string]string
	// Values are figures about it. They may differ at the end.
	Values map[string]string
	// Link is where to look, a URL. May be empty.
	Link string
}

// Runbook is where the documentation says what to do, within the repository.
func (a Alert) Runbook() string { return "docs/operating/alerts.md#" + strings.ToLower(a.Kind) }

// Status is "firing" or "resolved".
func (a Alert) Status() string {
	if a.Resolved {
		return "resolved"
	}
	return "firing"
}

// clone shares nothing with the caller's alert.
func (a Alert) clone() Alert {
	a.Labels, a.Values = maps.Clone(a.Labels), maps.Clone(a.Values)
	return a
}

// endOf makes the end of an incident from its beginning and what was said at the
// end, so that what identifies it is the same in both.
func endOf(start, said Alert) Alert {
	end := start
	end.Resolved, end.Ended, end.Values = true, said.Ended, said.Values
	if said.Text != "" {
		end.Text = said.Text
	}
	return end
}

// Sink takes alerts somewhere.
type Sink interface {
	// Send delivers one alert and returns when that is done or ctx ends. An error
	// means that it may not have arrived: the Notifier asks again. It has one
	// caller at a time. It must not change the alert's maps.
	Send(ctx context.Context, a Alert) error
}

// Func is a sink that calls a function. One that does not return holds up its own
// alerts only, but it makes Notifier.Close return with an error.
type Func func(Alert)

// Send calls the function.
func (f Func) Send(_ context.Context, a Alert) error {
	f(a)
	return nil
}

// String names the sink in errors.
func (f Func) String() string { return "function" }
