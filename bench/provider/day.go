package provider

import "time"

// Day is a quota of requests that starts anew once a day.
type Day struct {
	// Requests are those of a day. From 1 to 10^8.
	Requests int64
	// Ends is when the first day ends, from more than 0 to 24 h; all others are 24 h long.
	Ends time.Duration
}

// days counts requests by the day. A nil one lets everything in.
type days struct {
	Day
	today time.Duration
	used  int64
}

func newDays(d *Day) *days {
	if d == nil {
		return nil
	}
	return &days{Day: *d}
}

// full says whether a day has had what it may have.
func (d *days) full(now time.Duration) bool {
	if d == nil {
		return false
	}
	if today := (now - d.Ends + 24*time.Hour) / (24 * time.Hour); today != d.today {
		d.today, d.used = today, 0
	}
	return d.used >= d.Requests
}

func (d *days) count() {
	if d != nil {
		d.used++
	}
}
