package notice

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/fsm/effect"
)

// warning is what a limit in mode warn would have refused. Its value is the reason.
func warning(e effect.Effect) events.Event {
	reason := strings.TrimPrefix(e.Value, "REASON_")
	what := fmt.Sprintf("key %q of limit %s", e.Key, e.Limit)
	if e.Dimension != "" {
		what = e.Dimension + " of " + what
	}
	text := fmt.Sprintf("%s would be refused if it were enforced: %s", what, reason)
	if e.Client != "" {
		text += fmt.Sprintf(", by %q", e.Client)
	}
	return events.Event{
		Kind: events.LimitWarning, Severity: events.Warning, Limit: e.Limit, Client: e.Client, Value: reason, Text: text,
	}
}

// quota is a part of a quota that is used for the first time in its window. Its value
// is the part.
func quota(e effect.Effect) events.Event {
	part := e.Value
	if hundredths, err := strconv.ParseInt(e.Value, 10, 64); err == nil {
		part = strconv.FormatFloat(float64(hundredths)/100, 'f', -1, 64) + "%"
	}
	return events.Event{
		Kind: events.QuotaWarning, Severity: events.Warning, Limit: e.Limit, Client: e.Client, Value: part,
		Text: fmt.Sprintf("%s of key %q of limit %s: %s of the quota is used, %s", e.Dimension, e.Key, e.Limit, part, e.Text),
	}
}

// Quiet is for how long a limit that was warned of is not warned of again.
const Quiet = time.Minute

// Rarely lets one warning of a limit through in a time: a limit in mode warn may warn a
// thousand times a second. The zero Rarely is ready; it is for one goroutine, and as
// large as there are limits that warn.
type Rarely struct{ last map[string]time.Time }

// Due says whether to warn of a limit at a time of a clock that may step.
func (r *Rarely) Due(limit string, at time.Time) bool {
	if r.last == nil {
		r.last = make(map[string]time.Time)
	}
	if last, there := r.last[limit]; there && at.Sub(last).Abs() < Quiet {
		return false
	}
	r.last[limit] = at
	return true
}

// Forget lets a limit go that there is no more.
func (r *Rarely) Forget(limit string) { delete(r.last, limit) }
