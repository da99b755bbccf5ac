package told

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/session"
)

const (
	// reportMax bounds one report: longer than the client takes for all of its attempts.
	reportMax = 4 * time.Second
	// reportGap is the least time between two reports: fifty a second, whatever comes.
	reportGap = 20 * time.Millisecond
	// calmGap is that between two with headers: ten a second, since each is a log entry.
	calmGap = 100 * time.Millisecond
	// noticeAfter is how long the notice of a circuit waits for what the authority makes of
	// the answer that opened it.
	noticeAfter = 50 * time.Millisecond
	// nearly is how much shorter than a notice the authority may hold closed what that is
	// about, and it still need not be told.
	nearly = time.Second
	// headersKeep is for how long headers are worth telling, or the least time between two
	// reports of them, if that is longer: then others have used what was left.
	headersKeep = 2 * time.Second
	// pauseFirst and pauseMax are how long there is no report after one that failed.
	pauseFirst = 100 * time.Millisecond
	pauseMax   = 2 * time.Second
	// aside is how long an answer waits for which the authority has no room.
	aside = time.Second
	// complainEvery is how often it is logged that answers are refused.
	complainEvery = time.Minute
	// forgetEvery is how long nothing has to happen until what was told is forgotten.
	forgetEvery = time.Minute
	// reasonMax is the longest reason, in bytes, and attributesMax how many attributes work
	// may have.
	reasonMax     = 256
	attributesMax = 32
	never         = time.Duration(math.MaxInt64)
)

// run tells until everything is told after Close, or ctx ends.
func (t *Teller) run(ctx context.Context) {
	defer close(t.joined)
	timer := time.NewTimer(never)
	defer timer.Stop()
	defer t.announce(true)
	for ctx.Err() == nil {
		batch, wait, done := t.next()
		t.announce(false)
		switch {
		case done:
			return
		case len(batch) > 0:
			t.report(ctx, batch)
			continue
		}
		timer.Reset(wait)
		closing := t.closing
		if t.isClosing() {
			// It is closed, and would wake us for ever.
			closing = nil
		}
		select {
		case <-t.wake:
		case <-timer.C:
		case <-closing:
		case <-ctx.Done():
		}
	}
}

func (t *Teller) isClosing() bool {
	select {
	case <-t.closing:
		return true
	default:
		return false
	}
}

// next takes what is to be told now, or says for how long there is nothing. done: nothing
// will be any more.
func (t *Teller) next() (batch []*entry, wait time.Duration, done bool) {
	closing := t.isClosing()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.mu.queue.forget(now - max(t.config.Moment, t.config.HeadersGap))
	if !closing {
		t.recheckLocked(now)
	}
	if t.mu.queue.len() == 0 {
		return nil, t.idleLocked(now), closing
	}
	if now < t.mu.hold && (!closing || t.mu.failures > 0) {
		return nil, t.mu.hold - now, false
	}
	due := func(e *entry) time.Duration {
		switch {
		case closing:
			return now
		case e.rank == headers:
			return max(e.due, t.mu.calm)
		default:
			return e.due
		}
	}
	batch, at := t.mu.queue.pick(now, t.mu.size, due, func(e *entry) bool { return t.isOverLocked(now, e) })
	if len(batch) == 0 && t.mu.queue.len() == 0 {
		return nil, t.idleLocked(now), closing
	}
	return batch, min(max(0, at-now), t.idleLocked(now)), false
}

// idleLocked is for how long there is nothing to do while nobody comes.
func (t *Teller) idleLocked(now time.Duration) time.Duration {
	wait := max(0, t.mu.money.next()-now)
	if t.mu.queue.told.Len() > 0 {
		wait = min(wait, forgetEvery)
	}
	return wait
}

// isOverLocked says whether there is nothing to be told of an entry any more, and counts
// why.
func (t *Teller) isOverLocked(now time.Duration, e *entry) bool {
	switch {
	case e.notice && t.closings.until(e.circuit) >= e.until-nearly:
		count(e, &t.mu.stats.Merged)
		return true
	case e.rank == headers && now > e.came+max(t.config.HeadersGap, headersKeep),
		e.rank == refusals && now > max(e.until, e.came+t.config.Keep):
		count(e, &t.mu.stats.Stale)
		return true
	default:
		return false
	}
}

// report tells a batch, and takes in what became of it.
func (t *Teller) report(ctx context.Context, batch []*entry) {
	answers := t.answers(batch)
	bounded, cancel := context.WithTimeout(ctx, reportMax)
	controlled, err := t.config.Authority.Feedback(bounded, answers...)
	cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.mu.stats.Reports++
	t.mu.hold = now + reportGap
	switch {
	case err == nil:
		if t.mu.failures > 0 {
			t.config.Logger.Info("what providers answer is heard again")
		}
		t.mu.failures = 0
		t.mu.size = min(2*t.mu.size, t.config.Batch)
		for i, e := range batch {
			c := feedback.Controlled{Gone: true}
			if i < len(controlled) {
				c = controlled[i]
			}
			t.toldLocked(now, e, c)
		}
	case isRefused(err) && len(batch) > 1:
		// All are refused for one of them, or because they are too many.
		t.mu.size = max(1, len(batch)/2)
		t.backLocked(batch)
	case isRefused(err):
		t.turnedDownLocked(now, batch[0], err)
	default:
		t.failedLocked(now, batch, err)
	}
}

// answers is what is told of a batch, with the waits that are left.
func (t *Teller) answers(batch []*entry) []feedback.Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	answers := make([]feedback.Answer, len(batch))
	for i, e := range batch {
		answers[i] = e.answer
		answers[i].Wait = max(0, e.until-now)
		e.again = false
		if e.rank == headers {
			t.mu.calm = now + calmGap
		}
	}
	return answers
}

// toldLocked takes in what the authority has made of an answer.
func (t *Teller) toldLocked(now time.Duration, e *entry, c feedback.Controlled) {
	if e.place.kind == questions {
		t.mu.stats.Asked++
	} else {
		t.mu.stats.Told++
		if c.Gone {
			t.mu.stats.Unheard++
		}
	}
	t.mu.queue.rest(e, now)
	if e.again {
		e.due = now + t.gap(e)
		t.mu.queue.wait(e)
	}
	t.hear(now, e.circuit, c.Paused)
	t.mu.money.heard(now+t.config.Recheck, e, c)
}

// backLocked makes a batch wait again, in its order.
func (t *Teller) backLocked(batch []*entry) {
	for i := len(batch) - 1; i >= 0; i-- {
		t.mu.queue.back(batch[i])
		t.joinLocked(batch[i])
	}
}

// joinLocked makes what came of an entry while it could not be told one with it.
func (t *Teller) joinLocked(e *entry) {
	if e.again {
		e.again = false
		count(e, &t.mu.stats.Merged)
	}
}

// turnedDownLocked takes in that the authority refuses an answer alone. Where it has no room
// that may pass.
func (t *Teller) turnedDownLocked(now time.Duration, e *entry, err error) {
	t.mu.money.unheard(e)
	t.joinLocked(e)
	if session.Reason(err) == noRoom {
		e.due = now + aside
		t.mu.queue.wait(e)
		return
	}
	t.mu.queue.remove(e)
	t.refusedLocked(now, e, err.Error())
}

// failedLocked takes in that nobody may have heard of a batch.
func (t *Teller) failedLocked(now time.Duration, batch []*entry, err error) {
	t.backLocked(batch)
	for _, e := range batch {
		t.mu.money.unheard(e)
	}
	t.mu.stats.Failed++
	if t.mu.failures == 0 {
		t.config.Logger.Warn("what providers answer is not heard", "err", err)
	}
	pause := min(pauseFirst<<min(t.mu.failures, 10), pauseMax)
	if t.mu.closed {
		pause = pauseFirst
	}
	t.mu.failures++
	t.mu.hold = now + pause/2 + rand.N(pause/2)
}

// refusedLocked counts an answer that the authority does not take, and says so now and
// then.
func (t *Teller) refusedLocked(now time.Duration, e *entry, problem string) {
	count(e, &t.mu.stats.Refused)
	if now-t.mu.complained >= complainEvery {
		t.mu.complained = now
		t.config.Logger.Warn("an answer of a provider can't be told", "err", clip(problem, reasonMax))
	}
}

// noRoom is the reason of a node that there are too many keys under control.
const noRoom = "REPORT_LIMIT"

// isRefused says whether the authority refuses a report for what is in it.
func isRefused(err error) bool {
	return status.Code(err) == codes.InvalidArgument || session.Reason(err) == noRoom
}

// bucketOf is the key of the bucket that hears of a circuit: what the authority makes of a
// limit's attributes, the tenant and the deployment, or the deployment alone.
func bucketOf(key circuit.Key) string {
	if key.All {
		return key.Deployment
	}
	return escape.Replace(key.Tenant) + "|" + escape.Replace(key.Deployment)
}

var escape = strings.NewReplacer("|", `\|`, `\`, `\\`)

// printable is a reason as the authority takes it.
func printable(text string) string {
	if !utf8.ValidString(text) || strings.IndexFunc(text, unicode.IsControl) >= 0 {
		text = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return '?'
			}
			return r
		}, strings.ToValidUTF8(text, "?"))
	}
	return clip(text, reasonMax)
}

// clip cuts text to at most n bytes, between two characters.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}
