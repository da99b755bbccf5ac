package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/api/limitsfile/callers"
)

var (
	noDelay = kind{
		NoDelay, Critical,
		"wait as long as the refusal says, and a random time on top",
	}
	fixedDelay = kind{
		FixedDelay, Critical,
		"wait as long as the refusal says, and a random time on top (jitter)",
	}
	noJitter = kind{
		NoJitter, Critical,
		"make a part of each delay random (jitter), on top of the wait that the refusal says",
	}
	stackedRetries = kind{
		StackedRetries, Critical,
		"let one of them try again and set the attempts of the others to 1",
	}
	hintsIgnored = kind{
		HintsIgnored, Critical,
		"take retry_after for the least that a wait may be",
	}
	fallbackAtOnce = kind{
		FallbackAtOnce, Warning,
		"wait where retry_after is short, and go elsewhere where it is long",
	}
	noDedupe = kind{
		NoDedupe, Warning,
		"name the work by a hash of the request and use it as lease id, so that it is done once",
	}
	onlyErrors = kind{
		OnlyErrors, Warning,
		"measure retries, duplicates, spend and the queue too: errors are the last to show",
	}
	queueNotWatched = kind{
		QueueNotWatched, Warning,
		"watch quorlease_queue_depth and quorlease_queue_oldest_seconds",
	}
)

func (e *examination) client(at string, c *callers.Client) {
	name := limitsfile.Quote(c.Name)
	e.delay(at, c)
	if owners := c.Owners(); len(owners) > 1 {
		e.add(stackedRetries, at+".attempts", "%s of %s try again: %s attempts for one piece of work",
			listed(owners), name, product(c))
	}
	if c.Honours != nil && !*c.Honours {
		e.add(hintsIgnored, at+".honours_retry_after", "%s comes back before the wait that it is told is over", name)
	}
	if c.FallbackAfter != nil && *c.FallbackAfter == 1 {
		e.add(fallbackAtOnce, at+".fallback_after", "%s goes elsewhere on the first refusal, where it costs more", name)
	}
	if c.Dedupes != nil && !*c.Dedupes {
		e.add(noDedupe, at+".dedupes", "%s does the same work again when it comes twice", name)
	}
	if c.Measures == nil {
		return
	}
	others := func(m string) bool { return m != callers.ProviderErrors }
	if len(c.Measures) > 0 && !slices.ContainsFunc(c.Measures, others) {
		e.add(onlyErrors, at+".measures", "of %s only the provider's errors are measured", name)
	}
	if !slices.Contains(c.Measures, callers.QueueDepth) && !slices.Contains(c.Measures, callers.OldestWait) {
		e.add(queueNotWatched, at+".measures", "nobody watches how much of %s waits, nor how long", name)
	}
}

// delay is about what a fleet does in step. One caller alone may wait as it likes,
// as long as it waits.
func (e *examination) delay(at string, c *callers.Client) {
	name := limitsfile.Quote(c.Name)
	if c.Delay == callers.None {
		e.add(noDelay, at+".delay", "%s tries again at once", name)
	}
	if !c.Fleet() || c.Jitter != nil && *c.Jitter > 0 {
		return
	}
	many := "how many there are is not said"
	if c.Instances != nil {
		many = fmt.Sprintf("%d of them", *c.Instances)
	}
	switch c.Delay {
	case callers.Unknown, callers.None:
	case callers.Fixed:
		e.add(fixedDelay, at+".delay", "%s waits the same each time, without a random part: all come back together (%s)",
			name, many)
	case callers.Exponential:
		e.add(noJitter, at+".delay", "%s waits longer each time, without a random part: all come back together (%s)",
			name, many)
	}
}

// listed writes "a, b and c".
func listed(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// product writes "3 × 2 × 5 = 30".
func product(c *callers.Client) string {
	var factors []string
	for _, l := range c.Attempts {
		if l.Attempts > 1 {
			factors = append(factors, fmt.Sprint(l.Attempts))
		}
	}
	return strings.Join(factors, " × ") + " = " + c.Product().String()
}
