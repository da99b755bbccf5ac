package told

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/names"
)

// Teller tells the authority what providers answer, and knows what that holds closed. It
// is safe for concurrent use; no method but Close waits for anybody.
type Teller struct {
	config   Config
	began    time.Time
	closings *closings
	// wake has room for one: something has to be told.
	wake   chan struct{}
	cancel context.CancelFunc
	joined chan struct{}
	// closing is closed when what is left is to be told at once.
	closing chan struct{}
	once    sync.Once
	failure error

	mu struct {
		sync.Mutex
		queue  *queue
		money  incidents
		closed bool
		stats  Stats
		// size is how many answers the next report has at most.
		size int
		// hold is before when there is no report, and calm before when there is none of headers.
		// failures is how many have failed in a row.
		hold, calm time.Duration
		failures   int
		// complained is when it was last logged that an answer is refused.
		complained time.Duration
	}
}

// New starts a Teller: one goroutine, which Close ends. The error names every field that
// is out of range.
func New(c Config) (*Teller, error) {
	c.defaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configuration of what is told: %w", err)
	}
	t := &Teller{
		config: c, began: c.Now(), closings: newClosings(c.Keys),
		wake: make(chan struct{}, 1), joined: make(chan struct{}), closing: make(chan struct{}),
	}
	t.mu.queue, t.mu.money, t.mu.size, t.mu.complained = newQueue(c.Queue), newIncidents(), c.Batch, -complainEvery
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	go t.run(ctx)
	return t, nil
}

// now is the time since New.
func (t *Teller) now() time.Duration { return t.config.Now().Sub(t.began) }

// Tell takes what a provider answered. What it says nothing of is passed over. After Close
// it does nothing.
func (t *Teller) Tell(about About, v *provider.Verdict) {
	a, told := v.Answer()
	if v.Class == provider.None {
		t.succeeded(about.Deployment)
	}
	if !told {
		return
	}
	a.Reason = printable(a.Reason)
	if a.Limit, a.Key = about.Limit, about.Key; a.Limit == "" {
		a.Attributes = about.Attributes
		if len(a.Attributes) == 0 {
			a.Attributes = map[string]string{"tenant": about.Tenant, "deployment": about.Deployment}
		}
	}
	key := circuit.Key{Tenant: about.Tenant, Deployment: about.Deployment}
	if a.Kind == feedback.Overloaded {
		key = circuit.Key{Deployment: about.Deployment, All: true}
	}
	now := t.now()
	e := &entry{answer: a, circuit: key, came: now}
	if a.Wait > 0 {
		e.until = now + min(a.Wait, provider.WaitMax)
	}
	if a.Kind == feedback.SpendCap {
		t.capped(now, about, v, e)
		return
	}
	t.enqueue(now, e)
}

func (t *Teller) enqueue(now time.Duration, e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enqueueLocked(now, e)
}

// enqueueLocked makes an answer wait, or adds it to an equal one. False: it can't be told.
func (t *Teller) enqueueLocked(now time.Duration, e *entry) bool {
	if t.mu.closed {
		return false
	}
	subject, problem := subjectOf(&e.answer)
	e.place = place{subject, e.answer.Kind}
	if problem != "" {
		t.refusedLocked(now, e, problem)
		return false
	}
	e.rank = rankOf(e.answer.Kind)
	if e.answer.Kind == questions {
		e.answer.Kind = feedback.Observed
	}
	known := t.mu.queue.byPlace[e.place]
	if known == nil {
		e.answer.Attributes = maps.Clone(e.answer.Attributes)
		ok, lost := t.mu.queue.add(e)
		if lost != nil {
			count(lost, &t.mu.stats.Lost)
		}
		if ok {
			t.rouse()
		}
		return ok
	}
	known.merge(now, e.until, e.answer)
	switch {
	case known.waits, known.again:
		count(known, &t.mu.stats.Merged)
	case known.at == nil:
		known.again = true
	default:
		known.due = known.sent + t.gap(known)
		t.mu.queue.wait(known)
		t.rouse()
	}
	return true
}

// gap is the least time between two reports of equal answers.
func (t *Teller) gap(e *entry) time.Duration {
	if e.place.kind == feedback.Observed {
		return t.config.HeadersGap
	}
	return t.config.Moment
}

// count counts an answer; a question is none.
func count(e *entry, figure *uint64) {
	if e.place.kind != questions {
		*figure++
	}
}

// rouse wakes run.
func (t *Teller) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// subjectOf is whom an answer is about, or what is wrong with that.
func subjectOf(a *feedback.Answer) (subject, problem string) {
	if a.Limit != "" {
		if problem = names.LimitProblem(a.Limit); problem == "" {
			problem = names.KeyProblem(a.Key)
		}
		return a.Limit + "\x00" + a.Key, problem
	}
	if n := len(a.Attributes); n > attributesMax {
		return "", fmt.Sprintf("%d attributes, more than %d", n, attributesMax)
	}
	var room [attributesMax]string
	all := room[:0]
	for name := range a.Attributes {
		all = append(all, name)
	}
	slices.Sort(all)
	var text strings.Builder
	text.Grow(len(all) * 32)
	for _, name := range all {
		value := a.Attributes[name]
		if problem = names.DimensionProblem(name); problem == "" {
			problem = names.ValueProblem(value)
		}
		if problem != "" {
			return "", fmt.Sprintf("attribute %.64q: %s", name, problem)
		}
		// A name of a limit is followed by a zero byte, and so is none of these.
		text.WriteString(name)
		text.WriteByte('\n')
		text.WriteString(value)
		text.WriteByte('\n')
	}
	return text.String(), ""
}

// Publish tells that a circuit has opened, where a limit is named for that and the answer
// that opened it does not say as much. now is not looked at. That one closed is not told:
// nothing at the authority was closed for longer.
func (t *Teller) Publish(_ time.Duration, key circuit.Key, n circuit.Notice) {
	name := t.config.Circuits
	if key.All {
		name = t.config.Deployments
	}
	if n.Closed || n.Wait <= 0 || name == "" {
		return
	}
	a := feedback.Answer{Kind: feedback.Throttled, Limit: name, Key: bucketOf(key), Reason: "circuit open"}
	if n.Overloaded {
		a.Kind = feedback.Overloaded
	}
	now := t.now()
	e := &entry{answer: a, circuit: key, notice: true, came: now, due: now + noticeAfter}
	e.until = now + min(n.Wait, provider.WaitMax)
	t.enqueue(now, e)
}

// Learn is for how long the authority holds a circuit closed, where it was not given that
// before. now is not looked at. What is over by then is forgotten: the authority itself
// opens step by step. That a circuit closed nobody says: each gateway finds that out.
func (t *Teller) Learn(_ time.Duration, key circuit.Key) (circuit.Notice, bool) {
	left, news := t.closings.learn(t.now(), key)
	if !news {
		return circuit.Notice{}, false
	}
	t.mu.Lock()
	t.mu.stats.Learned++
	t.mu.Unlock()
	return circuit.Notice{Wait: left, Overloaded: key.All}, true
}

// Denied takes in that the authority has denied work. For how long what is paused there is
// closed it is asked, once for each pause: the hint of a denial has in it what the bucket
// needs for that work once it is open, and would refuse smaller work with it.
func (t *Teller) Denied(d *client.Decision, about About) {
	now := t.now()
	for i := range d.Denials {
		denial := &d.Denials[i]
		if denial.Reason != "PAUSED" || denial.Never || denial.RetryAfter < t.config.LeastPause {
			continue
		}
		key := circuit.Key{Tenant: about.Tenant, Deployment: about.Deployment}
		if t.config.Deployments != "" && denial.Limit == t.config.Deployments {
			key = circuit.Key{Deployment: about.Deployment, All: true}
		}
		if t.closings.until(key) <= now {
			t.enqueue(now, t.question(now, key, feedback.Answer{Limit: denial.Limit, Key: denial.Key}))
		}
	}
}

// question asks what the authority makes of a bucket or of work, and changes nothing there.
func (t *Teller) question(now time.Duration, key circuit.Key, a feedback.Answer) *entry {
	a.Kind, a.Reason, a.Remaining = questions, "", map[string]int64{"requests": plenty}
	return &entry{answer: a, circuit: key, came: now}
}

// hear takes in for how long the authority holds closed what a circuit is about.
func (t *Teller) hear(now time.Duration, key circuit.Key, left time.Duration) {
	if left >= t.config.LeastPause {
		t.closings.hear(now, key, now+left)
	}
}

// Stats are the figures now.
func (t *Teller) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.mu.stats
	s.Waiting, s.Capped = t.mu.queue.len(), t.mu.money.len()
	return s
}

// Close tells what waits, without waiting for its turn, and joins the goroutine. The error
// says how much could not be told. It is idempotent; later calls wait for the first.
func (t *Teller) Close() error {
	t.once.Do(func() {
		t.mu.Lock()
		t.mu.closed = true
		// What failed before is tried again now.
		t.mu.hold = 0
		t.mu.Unlock()
		close(t.closing)
		limit := time.NewTimer(t.config.CloseWithin)
		defer limit.Stop()
		select {
		case <-t.joined:
		case <-limit.C:
		}
		t.cancel()
		<-t.joined
		t.mu.Lock()
		defer t.mu.Unlock()
		if n := t.mu.queue.len(); n > 0 {
			t.failure = fmt.Errorf("close: %d answers of providers were not told", n)
		}
	})
	return t.failure
}
