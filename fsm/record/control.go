package record

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/pace"
)

const (
	// MaxPause is the longest that a provider can ask to wait.
	MaxPause = 24 * time.Hour
	// Quiet is for how long after a decrease there is no other one, at least: many
	// gateways report one event.
	Quiet = time.Second

	tagControl = 11
)

// ControlID names one key of one limit.
type ControlID struct {
	Limit uint32
	Key   string
}

// Control is what a provider's answers did to one key of one limit.
type Control struct {
	ID ControlID
	// From is when it began.
	From bucket.Instant
	// Pace is how fast the key's own time goes by: not at all while it is paused.
	Pace pace.Pace
	// Decreased is when its pace was last lowered, 0 for never.
	Decreased bucket.Instant
	// Blocked is until a person clears it, whatever the pace says.
	Blocked bool
	// Reason is the provider's word for it, Client who reported it; the last ones
	// that closed the key or slowed it down.
	Reason, Client string
}

// Paused says whether the key is closed at now for a time.
func (c *Control) Paused(now bucket.Instant) bool { return now < c.Pace.Opens }

// Lowered says that a signal at now speaks of the event for which the pace was
// already lowered: at most one decrease an interval, and none while it is paused.
func (c *Control) Lowered(now bucket.Instant) bool {
	return c.Paused(now) || c.Decreased != 0 && now < c.quietUntil()
}

func (c *Control) quietUntil() bucket.Instant {
	return c.Decreased + bucket.Instant(max(Quiet, c.Pace.Interval))
}

// Due is when it has no effect any more: pace.Never while somebody has to clear it.
func (c *Control) Due() bucket.Instant {
	if c.Blocked {
		return pace.Never
	}
	due := c.Pace.WholeAt()
	if c.Decreased != 0 {
		due = max(due, c.quietUntil())
	}
	return due
}

// Compare orders ids.
func (id *ControlID) Compare(o *ControlID) int {
	return cmp.Or(cmp.Compare(id.Limit, o.Limit), strings.Compare(id.Key, o.Key))
}

// Sum is the digest of the record.
func (c *Control) Sum() uint64 {
	sum := digest.New(tagControl)
	sum.Word(uint64(c.ID.Limit))
	sum.Text(c.ID.Key)
	sum.Int(int64(c.From))
	sum.Int(int64(c.Pace.Opens))
	sum.Int(c.Pace.Start)
	sum.Int(c.Pace.Step)
	sum.Int(int64(c.Pace.Interval))
	sum.Int(int64(c.Decreased))
	sum.Bool(c.Blocked)
	sum.Text(c.Reason)
	sum.Text(c.Client)
	return sum.Value()
}

// Save is the control for a snapshot.
func (c *Control) Save() *logv1.SnapshotControl {
	return &logv1.SnapshotControl{
		Limit: c.ID.Limit, Key: c.ID.Key, From: int64(c.From), PausedUntil: int64(c.Pace.Opens),
		Start: c.Pace.Start, Step: c.Pace.Step, Interval: int64(c.Pace.Interval),
		Decreased: int64(c.Decreased), Blocked: c.Blocked, Reason: c.Reason, Client: c.Client,
	}
}

// LoadControl makes a control of what Save made, and checks all that can be seen
// without other records. The error is a frames.ErrCorrupt.
func LoadControl(saved *logv1.SnapshotControl, now bucket.Instant) (Control, error) {
	c := Control{
		ID:   ControlID{Limit: saved.GetLimit(), Key: saved.GetKey()},
		From: bucket.Instant(saved.GetFrom()), Decreased: bucket.Instant(saved.GetDecreased()),
		Blocked: saved.GetBlocked(), Reason: saved.GetReason(), Client: saved.GetClient(),
	}
	corrupt := func(err error) (Control, error) {
		return Control{}, frames.Corrupt("control of key %q of limit %d: %v", check.Clip(c.ID.Key), c.ID.Limit, err)
	}
	var err error
	c.Pace, err = pace.New(pace.Pace{
		Opens: bucket.Instant(saved.GetPausedUntil()), Start: saved.GetStart(),
		Step: saved.GetStep(), Interval: time.Duration(saved.GetInterval()),
	})
	if err != nil {
		return corrupt(err)
	}
	for _, err := range []error{
		check.Text("reason", c.Reason, 0, check.MaxText), check.Text("client", c.Client, 0, check.MaxText),
	} {
		if err != nil {
			return corrupt(err)
		}
	}
	if c.From < 0 || c.From > now || c.Decreased < 0 || c.Decreased > now ||
		c.Pace.Opens > now+bucket.Instant(MaxPause) {
		return corrupt(fmt.Errorf("from %d, decreased at %d, paused until %d, now is %d",
			c.From, c.Decreased, c.Pace.Opens, now))
	}
	return c, nil
}
