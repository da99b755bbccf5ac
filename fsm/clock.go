package fsm

import (
	"math"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/shares"
)

// advance moves authority time to max(previous, stamp): an entry that was
// stamped long ago and committed late moves nothing back (T4, A01). A stamp
// beyond the end of authority time is no time at all; to obey it once would
// stop the clock for ever.
func (m *Machine) advance(entry *logv1.Entry) {
	if stamp := bucket.Instant(entry.GetStamp()); stamp > m.state.Now && stamp <= check.LastInstant {
		if stamp-m.state.Now > shares.Silence {
			m.state.Withhold(shares.Outage{From: m.state.Now, To: stamp})
		}
		m.state.Now = stamp
	}
	m.state.Wall = max(m.state.Wall, entry.GetWall())
}

// wallAt is what the wall clock will show at now, which is not before the machine's.
func (m *Machine) wallAt(now bucket.Instant) int64 {
	ahead := int64(now - m.state.Now)
	return m.state.Wall + min(ahead, math.MaxInt64-m.state.Wall)
}
