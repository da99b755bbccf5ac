package fsm

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// clock is authority time as far as the log has told.
type clock struct {
	now  bucket.Instant
	wall int64
}

// lastInstant bounds stamps, 146 years. Up to it any time that follows from
// now and a duration of the configuration fits an int64.
const lastInstant = bucket.Instant(1 << 62)

// advance moves the clock to max(previous, stamp): an entry that was stamped long
// ago and committed late moves nothing back (T4, A01). A stamp beyond the end of
// authority time is no time at all; to obey it once would stop the clock for
// ever.
func (c *clock) advance(entry *logv1.Entry) {
	if stamp := bucket.Instant(entry.GetStamp()); stamp > c.now && stamp <= lastInstant {
		c.now = stamp
	}
	c.wall = max(c.wall, entry.GetWall())
}
