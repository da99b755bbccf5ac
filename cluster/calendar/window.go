package calendar

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Window is the window that a moment is in: from starts until before ends, all in
// Unix nanoseconds. Windows of a calendar follow one another without a gap. The error
// says that there is no such time zone here.
//
// A day and a month begin with the first moment of their date in the zone. An hour
// begins whenever the clock shows no minutes: where clocks are put back by an hour
// there are two windows of the same name, each an hour long.
func Window(c *logv1.Calendar, wall int64) (starts, ends int64, err error) {
	zone, err := time.LoadLocation(c.GetTimezone())
	if err != nil {
		return 0, 0, fmt.Errorf("time zone %q: %w", c.GetTimezone(), err)
	}
	at := time.Unix(0, wall)
	var from, to time.Time
	switch c.GetPeriod() {
	case logv1.Calendar_PERIOD_MONTH:
		from, to = around(at, func(step int) time.Time {
			year, month, _ := at.In(zone).Date()
			return dateBegins(zone, year, month+time.Month(step), 1)
		})
	case logv1.Calendar_PERIOD_DAY:
		from, to = around(at, day(zone, at))
	case logv1.Calendar_PERIOD_HOUR:
		from, _ = around(at, day(zone, at))
		for to = hourEnds(zone, from); !to.After(at); to = hourEnds(zone, to) {
			from = to
		}
	case logv1.Calendar_PERIOD_UNSPECIFIED:
		return 0, 0, fmt.Errorf("%v is no period", c.GetPeriod())
	default:
		return 0, 0, fmt.Errorf("%v is no period", c.GetPeriod())
	}
	return from.UnixNano(), to.UnixNano(), nil
}

// day is the beginning of the date that a zone shows at a moment, and of those
// before and after it.
func day(zone *time.Location, at time.Time) func(step int) time.Time {
	return func(step int) time.Time {
		year, month, day := at.In(zone).Date()
		return dateBegins(zone, year, month, day+step)
	}
}

// around finds the two beginnings that a moment is between. They are those of the
// date that the clock shows, but where clocks are put back over midnight, or a date
// is left out.
func around(at time.Time, begins func(step int) time.Time) (from, to time.Time) {
	step := 0
	for begins(step).After(at) {
		step--
	}
	for !begins(step + 1).After(at) {
		step++
	}
	return begins(step), begins(step + 1)
}

// zoneMost is more than any zone is away from UTC.
const zoneMost = 30 * time.Hour

// dateBegins is the first moment at which a zone shows a date, or a later one where
// it leaves that date out. Midnight does not do: some zones leave it out, and some
// have it twice.
func dateBegins(zone *time.Location, year int, month time.Month, day int) time.Time {
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	for at := midnight.Add(-zoneMost).In(zone); ; {
		starts, ends := at.ZoneBounds()
		_, offset := at.Zone()
		// When it is midnight by the offset of this period of the zone.
		begins := midnight.Add(-time.Duration(offset) * time.Second)
		switch {
		case !starts.IsZero() && begins.Before(starts):
			// The period begins on that date, or after it.
			return starts
		case ends.IsZero() || begins.Before(ends):
			return begins
		}
		at = ends
	}
}

// hourEnds is the first moment after at when a zone's clock shows no minutes.
func hourEnds(zone *time.Location, at time.Time) time.Time {
	next := at.Add(time.Hour - pastHour(zone, at))
	// Some zones are put forward or back by half an hour.
	if past := pastHour(zone, next); past > 0 {
		next = next.Add(time.Hour - past)
	}
	return next
}

// pastHour is what a zone's clock shows beside the hour.
func pastHour(zone *time.Location, at time.Time) time.Duration {
	_, offset := at.In(zone).Zone()
	return (time.Duration(at.Unix()+int64(offset)) * time.Second) % time.Hour
}
