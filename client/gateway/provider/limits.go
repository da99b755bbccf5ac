package provider

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Limits are what the headers of one answer say.
type Limits struct {
	// Seen are in the order of the table, each dimension once.
	Seen []Limit
	// Garbage is how many headers said what can't be read. They are passed over.
	Garbage int
}

// Limit is what headers say about one dimension.
type Limit struct {
	Dimension string
	// Limit and Remaining are from 0 to 2^53, -1 where it is not said.
	Limit, Remaining int64
	// Rounded is to what Remaining is rounded, 0 where it is exact.
	Rounded int64
	// Full is in how long nothing will be used of it any more. It is no wait: a request
	// fits long before that. FullSaid: it was said.
	Full     time.Duration
	FullSaid bool
	// Short: it is about a few seconds, or may be, and says nothing about the minute.
	Short bool
}

const (
	// countMax is the largest amount that a charge may have.
	countMax = 1 << 53
	// fullMax is the longest time that a limit may take to be full: a month. A number
	// that is larger is something else, such as a time of day.
	fullMax = 31 * 24 * time.Hour
)

// ParseLimits reads the headers that the table names. wall is the time of day at
// which they came. configured is what the limits are thought to be a minute, by
// dimension; without it, what may be about seconds is taken to be.
func (t *Table) ParseLimits(header http.Header, wall time.Time, configured map[string]int64) Limits {
	var l Limits
	for i := range t.Headers {
		h := &t.Headers[i]
		seen := Limit{
			Dimension: h.Dimension, Rounded: h.Rounded,
			Limit: l.count(header, h.Limit), Remaining: l.count(header, h.Remaining),
		}
		if value := first(header, h.Reset); value != "" {
			var ok bool
			if seen.Full, ok = reset(value, wall); ok {
				seen.FullSaid = true
			} else {
				l.Garbage++
			}
		}
		if seen.Limit < 0 && seen.Remaining < 0 {
			continue
		}
		if want := configured[h.Dimension]; h.Short {
			seen.Short = want <= 0 || seen.Limit < want
		}
		l.Seen = append(l.Seen, seen)
	}
	return l
}

// Remaining is what is left by dimension: what the authority may be told. What is
// only about seconds is not in it.
func (l *Limits) Remaining() map[string]int64 {
	var left map[string]int64
	for _, seen := range l.Seen {
		if seen.Remaining < 0 || seen.Short {
			continue
		}
		if left == nil {
			left = make(map[string]int64, len(l.Seen))
		}
		left[seen.Dimension] = seen.Remaining
	}
	return left
}

// of is what is said about a dimension.
func (l *Limits) of(dimension string) (Limit, bool) {
	for _, seen := range l.Seen {
		if seen.Dimension == dimension {
			return seen, true
		}
	}
	return Limit{Limit: -1, Remaining: -1}, false
}

// first is the first value of a header.
func first(header http.Header, name string) string {
	if name == "" {
		return ""
	}
	return strings.TrimSpace(header.Get(name))
}

// count reads a header that is an integer: -1 where it is absent, can't be read, or
// says -1 itself, as some do for what they don't count.
func (l *Limits) count(header http.Header, name string) int64 {
	value := first(header, name)
	if value == "" || value == "-1" {
		return -1
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		l.Garbage++
		return -1
	}
	return min(n, countMax)
}

// reset reads a time until something, "6m0s" or whole seconds, or a moment.
func reset(value string, wall time.Time) (time.Duration, bool) {
	if len(value) > valueMax {
		return 0, false
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if math.IsNaN(seconds) || seconds < 0 || seconds > fullMax.Seconds() {
			return 0, false
		}
		return time.Duration(seconds * float64(time.Second)), true
	}
	if span, err := time.ParseDuration(value); err == nil {
		return span, span >= 0 && span <= fullMax
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return 0, false
	}
	span := max(0, at.Sub(wall))
	return span, span <= fullMax
}
