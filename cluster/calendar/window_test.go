package calendar_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/calendar"
)

const (
	hour  = logv1.Calendar_PERIOD_HOUR
	day   = logv1.Calendar_PERIOD_DAY
	month = logv1.Calendar_PERIOD_MONTH
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

// TestWindows says where windows begin and end, in UTC, at a moment of a zone.
func TestWindows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		zone   string
		period logv1.Calendar_Period
		at     string
		starts string
		ends   string
	}{
		{"a day", "UTC", day, "2026-11-30T09:15:28Z", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"the first moment is in", "UTC", day, "2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z"},
		{"a month", "Europe/Berlin", month, "2026-11-30T23:30:00Z", "2026-11-30T23:00:00Z", "2026-12-31T23:00:00Z"},
		{"a leap year", "UTC", month, "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"no leap year", "UTC", month, "2026-02-28T12:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"the 29th of February", "UTC", day, "2028-02-29T12:00:00Z", "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"},
		{
			"Berlin in spring: a day of 23 hours", "Europe/Berlin", day,
			"2026-03-29T10:00:00+02:00", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z",
		},
		{
			"Berlin in autumn: a day of 25 hours", "Europe/Berlin", day,
			"2026-10-25T10:00:00+01:00", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z",
		},
		{
			"Berlin in spring: a month", "Europe/Berlin", month,
			"2026-03-29T10:00:00+02:00", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z",
		},
		{
			"Berlin in spring: no hour from two to three", "Europe/Berlin", hour,
			"2026-03-29T03:10:00+02:00", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z",
		},
		{
			"Berlin in autumn: the first hour from two to three", "Europe/Berlin", hour,
			"2026-10-25T02:10:00+02:00", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z",
		},
		{
			"Berlin in autumn: the second hour from two to three", "Europe/Berlin", hour,
			"2026-10-25T02:10:00+01:00", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z",
		},
		{"half an hour off", "Asia/Kolkata", hour, "2026-11-30T09:15:28Z", "2026-11-30T08:30:00Z", "2026-11-30T09:30:00Z"},
		{
			"half an hour off, a day", "Asia/Kolkata", day,
			"2026-11-30T19:00:00Z", "2026-11-30T18:30:00Z", "2026-12-01T18:30:00Z",
		},
		{
			"put back by half an hour", "Australia/Lord_Howe", hour,
			"2026-04-05T01:45:00+10:30", "2026-04-04T14:00:00Z", "2026-04-04T15:30:00Z",
		},
		{
			"no midnight", "America/Sao_Paulo", day,
			"2018-11-04T12:00:00-02:00", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z",
		},
		{
			"midnight twice", "America/Havana", day,
			"2026-11-01T12:00:00-05:00", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z",
		},
		{
			"a date that was left out", "Pacific/Apia", day,
			"2011-12-31T12:00:00+14:00", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z",
		},
		{
			"put back over midnight", "America/St_Johns", day,
			"2010-11-07T00:30:00-02:30", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := &logv1.Calendar{Period: test.period, Timezone: test.zone}
			starts, ends, err := calendar.Window(c, at(t, test.at).UnixNano())
			if err != nil {
				t.Fatal(err)
			}
			gotStarts, gotEnds := time.Unix(0, starts).UTC(), time.Unix(0, ends).UTC()
			if !gotStarts.Equal(at(t, test.starts)) || !gotEnds.Equal(at(t, test.ends)) {
				t.Errorf("got  %s to %s\nwant %s to %s", gotStarts.Format(time.RFC3339), gotEnds.Format(time.RFC3339),
					test.starts, test.ends)
			}
		})
	}
}

// Windows follow one another: every moment is in the one that begins where the last
// one ended, and their lengths are those that the state machine takes.
func TestWindowsFollowOneAnother(t *testing.T) {
	t.Parallel()
	zones := []string{
		"UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo", "America/Havana",
		"Pacific/Apia", "America/St_Johns", "Asia/Kathmandu", "Africa/Casablanca", "Antarctica/Troll",
	}
	const oneDay = 24 * time.Hour
	least := map[logv1.Calendar_Period]time.Duration{hour: 30 * time.Minute, day: 12 * time.Hour, month: 27 * oneDay}
	most := map[logv1.Calendar_Period]time.Duration{hour: 3 * time.Hour, day: 2 * oneDay, month: 33 * oneDay}
	from, until := at(t, "2009-01-01T00:00:00Z").Unix(), at(t, "2037-01-01T00:00:00Z").Unix()
	rapid.Check(t, func(rt *rapid.T) {
		c := &logv1.Calendar{
			Period:   rapid.SampledFrom([]logv1.Calendar_Period{hour, day, month}).Draw(rt, "period"),
			Timezone: rapid.SampledFrom(zones).Draw(rt, "zone"),
		}
		moment := rapid.Int64Range(from, until).Draw(rt, "at") * int64(time.Second)
		for range 30 {
			starts, ends, err := calendar.Window(c, moment)
			if err != nil {
				rt.Fatal(err)
			}
			if long := time.Duration(ends - starts); long < least[c.GetPeriod()] || long > most[c.GetPeriod()] {
				rt.Fatalf("%v: a window of %v from %v", c, long, time.Unix(0, starts).UTC())
			}
			if starts > moment || ends <= moment {
				rt.Fatalf("%v: %d is not in the window from %d to %d", c, moment, starts, ends)
			}
			next, _, err := calendar.Window(c, ends)
			if err != nil || next != ends {
				rt.Fatalf("%v: after %d comes %d, %v", c, ends, next, err)
			}
			if last, _, err := calendar.Window(c, ends-1); err != nil || last != starts {
				rt.Fatalf("%v: the last moment before %d is in the window from %d, want %d", c, ends, last, starts)
			}
			moment = ends
		}
	})
}

func TestUnknownZone(t *testing.T) {
	t.Parallel()
	if _, _, err := calendar.Window(&logv1.Calendar{Period: day, Timezone: "Mars/North"}, 0); err == nil {
		t.Error("a zone that is none has windows")
	}
	if _, _, err := calendar.Window(&logv1.Calendar{Timezone: "UTC"}, 0); err == nil {
		t.Error("no period has windows")
	}
}
