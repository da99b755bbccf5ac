package overview

import "time"

// View is what a book shows at a moment. It is the caller's.
type View struct {
	// Limits are in the order of their names, the first thousand of LimitsTotal.
	Limits      []Limit
	LimitsTotal int
	// Hour is what happened, the oldest first.
	Hour []Point
	// Firing are the open incidents, at most ShownMax of FiringTotal; RetryAlerts of
	// them are of clients' retries.
	Firing                   []Incident
	FiringTotal, RetryAlerts int
	// Clients are worth a look: those over their budget, then those that retry most,
	// were throttled most and ask most, each once. There are at most a few hundred.
	Clients []string
	// Over says since when clients are over their budget.
	Over map[string]time.Time
	// P95 is how long 95 % of the decisions took at most on limits that let nobody
	// wait and denied nothing in the last minute. HasP95: there were some.
	P95    time.Duration
	HasP95 bool
}

// View shows the hour and the minute that end at now.
func (b *Book) View(now time.Time) View {
	v := View{}
	b.past.Lock()
	v.Hour = b.past.hour.list(now)
	b.past.Unlock()
	b.mu.Lock()
	limits := b.mu.limits
	v.LimitsTotal = b.mu.total
	v.Firing, v.Over = b.mu.incidents.shown(), b.mu.incidents.over()
	v.FiringTotal, v.RetryAlerts = b.mu.incidents.counts()
	v.Clients = b.clientsLocked(v.Over)
	b.mu.Unlock()
	// The rest needs the limits' own locks.
	at, sum := b.second(now), times{}
	for _, l := range limits {
		v.Limits = append(v.Limits, l.view(at, &sum))
	}
	v.P95, v.HasP95 = sum.p95()
	return v
}

// overMax bounds the clients over their budget that are looked at.
const overMax = 256

func (b *Book) clientsLocked(over map[string]time.Time) []string {
	list := make([]string, 0, overMax+3*ClientPlaces)
	seen := make(map[string]bool, cap(list))
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	for name := range over {
		if len(list) == overMax {
			break
		}
		add(name)
	}
	for _, names := range []*sketch{&b.mu.retrying, &b.mu.throttled, &b.mu.busy} {
		for _, name := range names.names() {
			add(name)
		}
	}
	return list
}

// Over says since when clients are over their budget.
func (b *Book) Over() map[string]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.incidents.over()
}
