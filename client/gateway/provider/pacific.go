package provider

import "time"

// midnightPacific is when the day after now begins on the west coast of the United States,
// where some providers count their days. It is reckoned by the rule of 2007: summer time from
// the second Sunday of March to the first of November, each at two o'clock.
func midnightPacific(now time.Time) time.Time {
	local := now.UTC().Add(-winter)
	if isSummer(now) {
		local = local.Add(winter - summer)
	}
	next := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, time.UTC)
	if at := next.Add(summer); isSummer(at) {
		return at
	}
	return next.Add(winter)
}

// winter and summer are how far it is behind UTC.
const (
	winter = 8 * time.Hour
	summer = 7 * time.Hour
)

func isSummer(at time.Time) bool {
	year := at.UTC().Add(-winter).Year()
	begins := sunday(year, time.March, 2).Add(2*time.Hour + winter)
	ends := sunday(year, time.November, 1).Add(2*time.Hour + summer)
	return !at.Before(begins) && at.Before(ends)
}

// sunday is the beginning of the n-th Sunday of a month, in UTC.
func sunday(year int, month time.Month, n int) time.Time {
	first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	return first.AddDate(0, 0, (7-int(first.Weekday()))%7+7*(n-1))
}
