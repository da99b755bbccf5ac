package notice

import (
	"fmt"
	"time"

	"github.com/quorlease/quorlease/cluster/calendar"
	"github.com/quorlease/quorlease/cluster/events"
)

// Skew is a member whose wall clock is far from the others'. Its value is by how
// much.
func Skew(s calendar.Skew) events.Event {
	by, where := s.By.Round(time.Millisecond), "ahead of"
	if by < 0 {
		where = "behind"
	}
	return events.Event{
		Kind: events.ClockSkew, Severity: events.Warning, Node: s.Node, Value: by.String(),
		Text: fmt.Sprintf("the wall clock of %s is %v %s the others; calendar windows go by the middle one",
			s.Node, by.Abs(), where),
	}
}
