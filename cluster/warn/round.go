package warn

import (
	"cmp"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/window"
)

const (
	// lookEvery is how often all suspects are looked at where nothing makes it
	// sooner.
	lookEvery = time.Second
	// lookPause is the most that a look waits after the one before, and eachPause
	// what each suspect adds to that: looking takes a small part of the time,
	// however many there are.
	lookPause = 100 * time.Millisecond
	eachPause = 100 * time.Microsecond
)

// Rounds looks at the suspects, over and over. One caller at a time.
type Rounds struct {
	suspects *Suspects
	watch    Watch
	names    []string
	seen     []Standing
	// rested is when all may be looked at again, next when something will change by
	// itself.
	rested, next time.Duration
}

// OffendersMax is how many clients a round finds by name.
const OffendersMax = 100

// Offender is a client that retries.
type Offender struct {
	Client string
	// Fraction is the part of its requests that were retries, in parts per million.
	Fraction int64
	// Over: its budget is spent. Silent: the budget is one that nobody is told of.
	Over, Silent bool
}

// compare puts the worse one first: who is over its budget, then who retries most.
// Of equals the name decides, so that the same ones are found again.
func (o Offender) compare(p Offender) int {
	if o.Over != p.Over {
		if o.Over {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(p.Fraction, o.Fraction), cmp.Compare(o.Client, p.Client))
}

// Tops is what a round has found, for metrics.
type Tops struct {
	// Offenders are the worst OffendersMax, worst first, among clients whose budget
	// counts them.
	Offenders []Offender
	// Over is how many clients are over their budget.
	Over int
}

// Worst are the first so many of the offenders.
func (t Tops) Worst(most int) []Offender { return t.Offenders[:min(len(t.Offenders), most)] }

// NewRounds returns rounds that have looked at nobody.
func NewRounds(suspects *Suspects) *Rounds { return &Rounds{suspects: suspects, next: lookEvery} }

// View runs its argument with the machine and authority time, while no entry is
// applied.
type View func(func(*fsm.Machine, bucket.Instant))

// chunk is how many clients are looked at before entries may be applied again:
// a hundred take about a quarter of a millisecond.
const chunk = 100

// Look looks at every suspect and returns what has changed and what was found.
// at is a steady clock. It is called when Next says.
func (r *Rounds) Look(at time.Duration, view View) ([]Change, Tops) {
	names := r.suspects.List(r.names[:0], false)
	r.rested = at + min(time.Duration(len(names))*eachPause, lookPause)
	r.next = at + lookEvery
	return r.look(at, view, names)
}

// Glance looks at the suspects whose counts have changed. It is called whenever
// there are such: the time for which a client is above is exact only if its
// beginning and its end are seen when they are.
func (r *Rounds) Glance(at time.Duration, view View) []Change {
	changes, _ := r.look(at, view, r.suspects.List(r.names[:0], true))
	return changes
}

// Next is when to look at all: after a second, or sooner when a client will have
// been above for long enough or a window drops counts.
func (r *Rounds) Next() time.Duration { return max(r.next, r.rested) }

func (r *Rounds) look(at time.Duration, view View, all []string) (changes []Change, tops Tops) {
	r.names = all
	for names := r.names; len(names) > 0; {
		some := names[:min(chunk, len(names))]
		names = names[len(some):]
		r.seen = r.seen[:0]
		view(func(m *fsm.Machine, now bucket.Instant) {
			for _, name := range some {
				r.seen = append(r.seen, r.standing(m, now, name))
			}
		})
		for _, s := range r.seen {
			tops.add(s)
			changes = append(changes, r.watch.See(at, s)...)
			if due, ok := r.watch.Due(s); ok {
				r.next = min(r.next, due)
			}
			if s.slides > 0 {
				r.next = min(r.next, at+s.slides)
			}
		}
	}
	clear(r.names)
	return changes, tops
}

// standing is how one client stands. One that has no retries any more is no
// suspect, unless something of it is not over. It is dropped under the lock
// under which others are added, so that none is lost.
func (r *Rounds) standing(m *fsm.Machine, now bucket.Instant, name string) Standing {
	total, retries := m.ClientCounts(now, name)
	if retries == 0 && !r.watch.Watches(name) {
		r.suspects.Drop(name)
		return Standing{Client: name}
	}
	budget := m.BudgetFor(name)
	s := Standing{Client: name, Total: total, Retries: retries, Now: now}
	switch budget.GetMode() {
	case logv1.Mode_MODE_ENFORCE, logv1.Mode_MODE_WARN:
	case logv1.Mode_MODE_OFF:
		return s
	case logv1.Mode_MODE_SHADOW:
		// It is seen in the figures, and nobody is told.
		s.silent = true
	}
	if budget == nil {
		return s
	}
	rule := fsm.RuleOf(budget)
	s.counts = total > rule.MinRequests
	s.slides = lookPause
	if length := window.Length(rule.Window); length > lookPause {
		s.slides = time.Duration((window.At(int64(now), length)+1)*int64(length) - int64(now))
	}
	s.Window, s.WarnFraction = rule.Window, budget.GetWarnFraction()
	s.WarnFor = time.Duration(budget.GetWarnFor())
	s.Over = rule.Over(total, retries)
	s.Above = s.WarnFraction > 0 && rule.Above(total, retries, s.WarnFraction)
	s.Enforced = budget.GetMode() == logv1.Mode_MODE_ENFORCE
	if s.Over || s.Above {
		s.Error = m.Fault(now, name).Text
	}
	return s
}

func (t *Tops) add(s Standing) {
	if s.Over {
		t.Over++
	}
	if !s.counts || s.Retries > s.Total || s.Retries == 0 {
		return
	}
	// Counts of a window are below 2^50: a million of them would overflow, and
	// then it is exact enough to divide first.
	ppm := s.Retries * 1_000_000 / s.Total
	if s.Retries > 1<<42 {
		ppm = s.Retries / (s.Total / 1_000_000)
	}
	one := Offender{Client: s.Client, Fraction: ppm, Over: s.Over, Silent: s.silent}
	at, _ := slices.BinarySearchFunc(t.Offenders, one, Offender.compare)
	if at < OffendersMax {
		t.Offenders = slices.Insert(t.Offenders, at, one)
		t.Offenders = t.Offenders[:min(len(t.Offenders), OffendersMax)]
	}
}
