package provider

import (
	"fmt"
	"time"
)

// Seen is where a row was read, and when it was last compared with a copy of that.
type Seen struct {
	// How says what kind of source it is.
	How Evidence
	// Where names the page, the repository or the recording.
	Where string
	// On is the day, in UTC: 2006-01-02.
	On string
}

// Evidence is how far a source can be believed.
type Evidence int

// The kinds of evidence, the best one first.
const (
	// Documented by the provider itself.
	Documented Evidence = iota + 1
	// Source: read in the code of the provider's own client.
	Source
	// Recorded: in an answer that somebody kept.
	Recorded
	// Quoted by others only. Look again before relying on it.
	Quoted
	// Chosen by us, where nobody says anything.
	Chosen
)

// day is the layout of Seen.On.
const day = "2006-01-02"

const (
	// gathered is when the tables were filled: the day of their youngest source.
	gathered = "2026-08-28"
	// verified is when rows were last compared with copies of their sources. Those that
	// were say so by afresh.
	verified = "2026-12-01"
	// keysSeen is when it was last looked up who honours idempotency keys.
	keysSeen = "2026-12-01"
)

func documented(where string) Seen { return Seen{Documented, where, gathered} }
func source(where string) Seen     { return Seen{Source, where, gathered} }
func recorded(where string) Seen   { return Seen{Recorded, where, gathered} }
func quoted(where string) Seen     { return Seen{Quoted, where, gathered} }
func chosen(why string) Seen       { return Seen{Chosen, why, gathered} }

// afresh is a row that was looked at again.
func (s Seen) afresh() Seen {
	s.On = verified
	return s
}

// check is what is wrong with it, nil if nothing.
func (s Seen) check() error {
	switch _, err := time.Parse(day, s.On); {
	case s.How < Documented || s.How > Chosen:
		return fmt.Errorf("evidence: %d: must be from %d to %d", s.How, Documented, Chosen)
	case s.Where == "":
		return fmt.Errorf("where: missing")
	case err != nil:
		return fmt.Errorf("on: %q: must be a day such as %s", s.On, verified)
	}
	return nil
}

// Oldest is the row that was looked at longest ago, and for how long by now: 0
// where that day is to come.
func (t *Table) Oldest(now time.Time) (Seen, time.Duration) {
	var oldest Seen
	for _, s := range t.Rows() {
		if oldest.On == "" || s.On < oldest.On {
			oldest = s
		}
	}
	on, err := time.Parse(day, oldest.On)
	if err != nil {
		// Tables are checked by a test.
		return oldest, 0
	}
	return oldest, max(0, now.Sub(on))
}

// Rows are the sources of everything in the table.
func (t *Table) Rows() []Seen {
	rows := []Seen{t.Counting.Seen, t.Keys.Seen}
	for i := range t.Counting.Burndown {
		rows = append(rows, t.Counting.Burndown[i].Seen)
	}
	for i := range t.Signals {
		rows = append(rows, t.Signals[i].Seen)
	}
	for i := range t.Headers {
		rows = append(rows, t.Headers[i].Seen)
	}
	for i := range t.Routes {
		rows = append(rows, t.Routes[i].Seen)
	}
	return rows
}
