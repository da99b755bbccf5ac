package sim

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

const (
	// missesMost and missingMost are when a client takes the authority for gone,
	// answersLeast when it takes it for back.
	missesMost   = 3
	missingMost  = time.Second
	answersLeast = 5
	// probeEvery is how often a client asks that decides by itself.
	probeEvery = 200 * time.Millisecond
)

// fallback is one client's traffic on the limit that is shared while nobody
// answers: it asks, and when nobody answers paces itself at its share.
type fallback struct {
	client *client
	shape  *bucket.Shape
	// local starts empty at each incident: what was granted before may still be
	// spent (T34).
	local  bucket.Bucket
	origin time.Duration

	away            bool
	misses, answers int
	missingSince    time.Duration

	session  []byte
	admitted int64
	reported int64
	sending  bool
	reports  int
}

func (f *fallback) world() *World { return f.client.world }

func (f *fallback) act() {
	s := f.world().stage
	s.At(f.client.host, s.Between(time.Millisecond, f.client.think), f.act)
	if !f.away && f.reported < f.admitted {
		f.report()
	}
	switch {
	case !f.world().busy && !f.away:
	case f.away:
		f.decide()
	default:
		f.ask()
	}
}

// ask is one request; what it gets is spent as any lease is.
func (f *fallback) ask() {
	c := f.client
	op := &logv1.Acquire{
		LeaseId: c.nextID("u"), Client: c.name,
		Charges: charges(shareLimit, "", "requests", f.world().stage.Amount(1, 12)),
	}
	sent := c.clock()
	c.call(acquire(op), 400*time.Millisecond, func(r reply) {
		f.observe(r.result != nil)
		if r.result.GetAcquire().GetGranted() {
			c.hold(op, r, sent)
		}
	})
}

func (f *fallback) observe(answered bool) {
	now := f.client.host.Boot()
	if answered {
		f.misses = 0
		f.answers++
		if f.away && f.answers >= answersLeast {
			f.end()
		}
		return
	}
	f.answers = 0
	f.misses++
	if f.misses == 1 {
		f.missingSince = now
	}
	if !f.away && (f.misses >= missesMost || now-f.missingSince >= missingMost) {
		f.begin(now)
	}
}

func (f *fallback) begin(now time.Duration) {
	w := f.world()
	w.stats.Incidents++
	w.stage.Trace("%s decides by itself", f.client.name)
	f.away, f.origin = true, now
	f.local = f.shape.Empty(0)
	if w.trap == FullShare {
		f.local = f.shape.Full(0)
	}
	w.judge.Away(w.stage.Real(), f.client.name, w.limit(shareLimit), sharePPM)
	f.probe()
}

func (f *fallback) end() {
	w := f.world()
	w.stage.Trace("%s asks again, having admitted %d", f.client.name, f.admitted)
	f.away = false
	w.judge.Away(w.stage.Real(), f.client.name, w.limit(shareLimit), 0)
	f.report()
}

func (f *fallback) probe() {
	if !f.away {
		return
	}
	f.world().stage.At(f.client.host, probeEvery, f.probe)
	f.ask()
}

// decide admits what the share allows now.
func (f *fallback) decide() {
	w := f.world()
	f.local.Advance(f.shape, bucket.Instant(f.client.host.Boot()-f.origin))
	n := w.stage.Amount(1, 3)
	if _, ok := f.local.Take(f.shape, 0, n); !ok {
		return
	}
	f.admitted += n
	w.stats.Local += int(n)
	w.judge.SpendLocal(w.stage.Real(), f.client.name, charges(shareLimit, "", "requests", n)[0], n)
}

// report tells the authority what was admitted, cumulatively, until it is heard.
func (f *fallback) report() {
	if f.sending || f.reported == f.admitted {
		return
	}
	f.sending = true
	total := f.admitted
	c := f.client
	f.sendReport(total, func(r reply) {
		f.sending = false
		if r.result.GetAdmitted() != nil {
			f.reported = total
			return
		}
		if refusal := r.result.GetRefusal(); refusal != nil {
			c.world.judge.Complain("reports", "a report of %s is refused: %v", c.name, refusal)
		}
	})
}

func (f *fallback) sendReport(total int64, done func(reply)) {
	session, tokens := f.session, total
	if f.world().trap == NoReportID {
		// Each sending is a report of its own, of what is not known to be booked.
		f.reports++
		session = f.client.nextID("r")
		tokens = total - f.reported
	}
	op := &logv1.Operation{Kind: &logv1.Operation_ReportAdmitted{ReportAdmitted: &logv1.ReportAdmitted{
		Session: session, Client: f.client.name,
		Counts: []*logv1.AdmittedCount{{Limit: shareLimit, Dimension: "requests", Tokens: tokens}},
	}}}
	f.client.call(op, time.Second, done)
}
