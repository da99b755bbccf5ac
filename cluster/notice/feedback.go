package notice

import (
	"fmt"

	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/fsm/effect"
)

// controls are what feedback does to keys, and how much it matters.
var controls = map[effect.Kind]struct {
	kind     events.Kind
	severity events.Severity
	verb     string
}{
	effect.LimitPaused:     {events.LimitPaused, events.Info, "is paused"},
	effect.LimitBlocked:    {events.LimitBlocked, events.Warning, "is blocked"},
	effect.SpendCapReached: {events.SpendCapReached, events.Critical, "has reached its spend cap"},
	effect.LimitCleared:    {events.LimitCleared, events.Info, "is open again"},
}

// Feedback is what a provider's answer, or an operator after one, did to a key. Its
// value is the key.
func Feedback(e effect.Effect) (event events.Event, ok bool) {
	c, ok := controls[e.Kind]
	if !ok {
		return events.Event{}, false
	}
	text := fmt.Sprintf("key %q of limit %s %s: %s", e.Key, e.Limit, c.verb, e.Text)
	if e.Client != "" {
		text += fmt.Sprintf(", by %q", e.Client)
	}
	if e.Value != "" {
		text += fmt.Sprintf("; the provider says %q", e.Value)
	}
	return events.Event{
		Kind: c.kind, Severity: c.severity, Limit: e.Limit, Client: e.Client, Value: e.Key, Text: text,
	}, true
}
