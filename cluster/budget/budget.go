// Package budget runs the retry budgets on one node: it asks the desk before an
// acquire goes on, tells it what became of it, reports what was counted, and
// says who is about to lose a budget.
//
// What is *not* here: the rule (fsm/retry), what a node may admit by itself
// (cluster/retries), and who is warned of (cluster/warn).
package budget

import (
	"sync"
	"sync/atomic"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/cluster/warn"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/tally"
)

// reportEvery is how often a node reports the requests it counted, where nothing
// makes it report sooner.
const reportEvery = time.Second

// Config is what an Office needs of its node. All of it is called from any
// goroutine.
type Config struct {
	Desk *retries.Desk
	// View runs its argument with the machine and the authority time to read with,
	// under the lock that also covers applying an entry.
	View func(func(*fsm.Machine, bucket.Instant))
	// Revision is that of the limits and retry budgets which the node has applied, where it
	// is known without a lock; else nil.
	Revision func() uint64
	// Elapsed is the node's own steady clock.
	Elapsed func() time.Duration
	// Serving is the number of members, 0 while this node is none of them.
	Serving func() int
	// Propose proposes a report. Nobody waits for what becomes of it.
	Propose func(*logv1.ReportRetries)
	// WouldRefuse hears of acquires that a budget which is not enforced would have
	// refused.
	WouldRefuse func(*logv1.RetryBudget, logv1.Reason)
	// Publish publishes an event.
	Publish func(events.Event)
}

// Office decides, counts, reports and warns. It is safe for concurrent use.
type Office struct {
	config Config
	tops   atomic.Pointer[warn.Tops]
	// without is one more than a revision at which there was no retry budget; 0: none.
	without atomic.Uint64

	mu sync.Mutex
	// firing are the incidents that were published and are not over. Its bound is
	// that of the clients that the state machine keeps.
	firing map[incident]struct{}
}

// incident is one of a client, as events name it.
type incident struct {
	kind   events.Kind
	client string
}

// New returns an office. Its loops are the caller's to start.
func New(c Config) *Office {
	o := &Office{config: c, firing: make(map[incident]struct{})}
	o.tops.Store(&warn.Tops{})
	return o
}

// Tops is what the last look at the clients has found.
func (o *Office) Tops() warn.Tops { return *o.tops.Load() }

// Refused returns the denial of an acquire that its client's retry budget
// refuses, else nil. What is admitted is held until Finished; ruling says how.
// Deciding costs no commit.
func (o *Office) Refused(acquire *logv1.Acquire, attempt uint32, ruling *retries.Ruling) *logv1.Result {
	if acquire.GetClient() == "" {
		return nil
	}
	// Where there is no budget at all nobody waits for an entry that is being applied.
	revision := uint64(0)
	if o.config.Revision != nil {
		if revision = o.config.Revision() + 1; o.without.Load() == revision {
			return nil
		}
	}
	return o.ruled(acquire, attempt, ruling, revision)
}

// ruled is Refused where there may be budgets, as of a revision of before.
func (o *Office) ruled(
	acquire *logv1.Acquire, attempt uint32, ruling *retries.Ruling, revision uint64,
) *logv1.Result {
	ask := retries.Ask{Acquire: acquire, Attempt: attempt}
	o.config.View(func(m *fsm.Machine, now bucket.Instant) {
		if m.BudgetFor(acquire.GetClient()) == nil {
			// Spare the rest.
			if !m.Budgeted() {
				o.without.Store(revision)
			}
			return
		}
		ask.At, ask.Now, ask.Nodes = o.config.Elapsed(), now, o.config.Serving()
		*ruling = o.config.Desk.Decide(m, ask)
	})
	if ruling.Warning != nil {
		o.config.WouldRefuse(ruling.Budget, ruling.Warning.GetReason())
	}
	if ruling.Denial == nil {
		return nil
	}
	return &logv1.Result{Kind: &logv1.Result_Acquire{
		Acquire: &logv1.AcquireResult{Denials: []*logv1.Denial{ruling.Denial}},
	}}
}

// Finished ends the hold of an acquire. One that was granted counts, and one of
// which nobody knows (unknown); a denial counts as a denial only. An acquire that
// a budget in mode warn would have refused is answered so: result may get a
// warning.
func (o *Office) Finished(acquire *logv1.Acquire, ruling *retries.Ruling, result *logv1.AcquireResult, unknown bool) {
	if ruling.Budget == nil {
		return
	}
	ended := *ruling
	*ruling = retries.Ruling{}
	if result != nil && ended.Warning != nil && ended.Budget.GetMode() == logv1.Mode_MODE_WARN {
		result.Warnings = append(result.Warnings, ended.Warning)
	}
	denied := o.config.Desk.Answered(o.config.Elapsed(), acquire, ended, result, unknown)
	if denied != (tally.Count{}) {
		o.CountTried(acquire.GetClient(), retries.Tried{Count: denied})
	}
}

// CountTried counts what a client did that no node decided: by permits that it
// held, as it reports them. The counts are differences since its last report.
func (o *Office) CountTried(client string, tried retries.Tried) {
	o.config.View(func(m *fsm.Machine, now bucket.Instant) {
		o.config.Desk.Note(m, o.config.Elapsed(), now, client, tried)
	})
}

// KeepReported proposes the counts until stop is closed. A report that is lost
// does no harm: the next one is cumulative, and a count is forgotten only when
// the own replica has applied it.
func (o *Office) KeepReported(stop <-chan struct{}) {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		case <-o.config.Desk.Counter.Due():
		}
		if report := o.config.Desk.Counter.Report(o.config.Elapsed()); report != nil {
			o.config.Propose(report)
		}
	}
}

// KeepWarned looks at the clients that retry until stop is closed, at each whose
// counts change and at all each second (S1-39), and publishes what begins and ends.
func (o *Office) KeepWarned(stop <-chan struct{}) {
	rounds := warn.NewRounds(o.config.Desk.Suspects)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var changes []warn.Change
		select {
		case <-stop:
			return
		case <-timer.C:
			var tops warn.Tops
			changes, tops = rounds.Look(o.config.Elapsed(), o.config.View)
			o.tops.Store(&tops)
		case <-o.config.Desk.Suspects.Touched:
			changes = rounds.Glance(o.config.Elapsed(), o.config.View)
		}
		for _, c := range changes {
			o.publish(event(c))
		}
		timer.Reset(rounds.Next() - o.config.Elapsed())
	}
}

// Firing says whether an incident of a client, by its name in events, is not over.
func (o *Office) Firing(kind events.Kind, client string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, firing := o.firing[incident{kind, client}]
	return firing
}

// publish keeps what fires first, so that whoever hears the event finds it.
func (o *Office) publish(e events.Event) {
	which := incident{e.Kind, events.CleanName(e.Client)}
	o.mu.Lock()
	if e.Severity > events.Info {
		o.firing[which] = struct{}{}
	} else {
		delete(o.firing, which)
	}
	o.mu.Unlock()
	o.config.Publish(e)
}

// event is a change as an event of this node: it is no entry of the log.
func event(c warn.Change) events.Event {
	e := events.Event{
		Kind: events.ClientRetryWarning, Severity: events.Warning,
		Client: c.Client, Value: c.Fraction(), Text: c.Text(), Window: c.Window, Error: c.Error, Bout: c.Bout(),
	}
	if c.Kind == warn.Over {
		e.Kind = events.ClientOverBudget
	}
	if c.Ended {
		e.Severity = events.Info
	}
	return e
}
