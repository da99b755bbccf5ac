package events

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind names an event. The same name is used for the log line, the metric
// rule and the page in docs/operating/alerts.md.
type Kind string

// The kinds.
const (
	LeaderChanged   Kind = "LeaderChanged"
	QuorumLost      Kind = "QuorumLost"
	QuorumRestored  Kind = "QuorumRestored"
	LimitChanged    Kind = "LimitChanged"
	LimitAdjusted   Kind = "LimitAdjusted"
	DebtWrittenOff  Kind = "DebtWrittenOff"
	LimitWarning    Kind = "LimitWarning"
	QuotaWarning    Kind = "QuotaWarning"
	LimitPaused     Kind = "LimitPaused"
	LimitBlocked    Kind = "LimitBlocked"
	SpendCapReached Kind = "SpendCapReached"
	LimitCleared    Kind = "LimitCleared"
	MemberAdded     Kind = "MemberAdded"
	MemberRemoved   Kind = "MemberRemoved"
	FollowerLagging Kind = "FollowerLagging"
	DiskLow         Kind = "DiskLow"
	DiskStalled     Kind = "DiskStalled"
	ClockSkew       Kind = "ClockSkew"
	AuditDropped    Kind = "AuditDropped"

	ClientRetryWarning Kind = "ClientRetryWarning"
	ClientOverBudget   Kind = "ClientOverBudget"
)

// Severity says who has to look.
type Severity int

// The severities; the numbers are those of the public protocol.
const (
	// Info: nobody.
	Info Severity = 1
	// Warning: somebody, during the day.
	Warning Severity = 2
	// Critical: somebody, now.
	Critical Severity = 3
)

// Event is one thing that happened.
type Event struct {
	// Sequence counts the events of this process, 1 first. Publish sets it.
	Sequence uint64
	// Index is that of the log entry, or 0 for what only this node saw.
	Index uint64
	// Place is the highest index published up to and including this event: what
	// "from index" is compared with. Publish sets it.
	Place uint64
	// Time is for people. Publish sets it where it is zero.
	Time     time.Time
	Kind     Kind
	Severity Severity
	Limit    string
	Client   string
	// Node is the member that it is about, where that is another than this one.
	Node  string
	Value string
	Text  string
	// Window is the time that the value is of, 0 where it is of none. Error is the
	// commonest one in it, empty where none is known.
	Window time.Duration
	Error  string
	// Bout tells incidents apart that several nodes see for themselves: they have
	// the same one. 0: nobody else sees it, or it stands in the log.
	Bout int64
}

// Bounds of the texts, in bytes, so that the ring's memory is bounded however
// long the keys are (G10).
const (
	nameLenMax  = 128
	valueLenMax = 256
	textLenMax  = 512
)

// clean bounds the texts and makes them safe to print: a client's name may
// hold anything, and an event is read on terminals.
func (e Event) clean() Event {
	e.Limit = cleanText(e.Limit, nameLenMax)
	e.Client = cleanText(e.Client, nameLenMax)
	e.Node = cleanText(e.Node, nameLenMax)
	e.Value = cleanText(e.Value, valueLenMax)
	e.Text = cleanText(e.Text, textLenMax)
	e.Error = cleanText(e.Error, nameLenMax)
	return e
}

// CleanName is a name that anybody may have chosen as events show it: printable, and
// at most 128 bytes. Different names may become the same.
func CleanName(name string) string { return cleanText(name, nameLenMax) }

// cleanText escapes what is not printable, line breaks and terminal sequences
// included, and cuts at most bytes with an ellipsis at the end. A text that
// needs neither is returned as it is.
func cleanText(s string, most int) string {
	if len(s) <= most && isClean(s) {
		return s
	}
	const ellipsis = "…"
	var b strings.Builder
	// keep is the length up to which an ellipsis still fits.
	keep := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		piece := s[i : i+size]
		if r == utf8.RuneError && size == 1 {
			piece = fmt.Sprintf(`\x%02x`, s[i])
		} else if !isPrintable(r) {
			piece = fmt.Sprintf(`\u{%04x}`, r)
		}
		if b.Len()+len(piece) > most {
			return b.String()[:keep] + ellipsis
		}
		b.WriteString(piece)
		if b.Len() <= most-len(ellipsis) {
			keep = b.Len()
		}
		i += size
	}
	return b.String()
}

func isClean(s string) bool {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || !isPrintable(r) {
			return false
		}
		i += size
	}
	return true
}

// isPrintable leaves out, beyond the control characters, what changes the
// direction of a line or is a line break by another name.
func isPrintable(r rune) bool { return unicode.IsPrint(r) }
