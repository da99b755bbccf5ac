package sim

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/client/failopen"
)

const (
	// askFor is how long a request for the shared limit waits.
	askFor = 400 * time.Millisecond
	// probeEvery is how often a client asks that decides by itself.
	probeEvery = 200 * time.Millisecond
	// fillTime is how long a share of the shared limit takes to fill its part of
	// the burst.
	fillTime = 12 * time.Second
)

// fallback is one client's traffic on the limit that is shared while nobody
// answers: it asks, and when nobody answers the real machine decides.
type fallback struct {
	client  *client
	machine *failopen.Machine
	session []byte
	// sending: a report is under way.
	sending bool
	booked  int64
}

func newFallback(c *client) *fallback {
	d := c.world.limit(rules.Share).GetDimensions()[0]
	share := int64(rules.SharePPM)
	machine, err := failopen.New(failopen.Config{Static: []failopen.Fallback{{
		Limit: rules.Share, Mode: failopen.Share, SharePPM: &share,
		Dimensions: []failopen.Dimension{{
			Name: d.GetName(), Amount: d.GetAmount(), Interval: time.Duration(d.GetInterval()), Burst: d.GetBurst(),
		}},
	}}})
	if err != nil {
		c.world.judge.Complain("model", "fallback of %s: %v", c.name, err)
	}
	session := make([]byte, 16)
	copy(session, "session-"+c.name)
	return &fallback{client: c, machine: machine, session: session}
}

func (f *fallback) world() *World { return f.client.world }

// now is the client's clock as a moment.
func (f *fallback) now() time.Time { return time.Unix(0, 0).Add(f.client.host.Boot()) }

func (f *fallback) act() {
	s := f.world().stage
	s.At(f.client.host, s.Between(time.Millisecond, f.client.think), f.act)
	if f.machine.Away() {
		f.decide()
		return
	}
	f.report()
	if f.world().busy {
		f.ask()
	}
}

// ask is one request; what it gets is spent as any lease is.
func (f *fallback) ask() {
	c := f.client
	op := &logv1.Acquire{
		LeaseId: c.nextID("u"), Client: c.name,
		Charges: rules.Charges(rules.Share, "", "requests", f.world().stage.Amount(1, 12)),
	}
	sent := c.clock()
	c.call(rules.Acquire(op), askFor, func(r reply) {
		f.observe(r)
		switch {
		case r.result.GetAcquire().GetGranted():
			c.hold(op, r, sent)
		case r.result == nil && !f.machine.Away():
			// It is decided for this call alone: a share has earned nothing yet.
			f.decide()
		}
	})
}

func (f *fallback) observe(r reply) {
	signal := failopen.Answered
	switch {
	case r.result != nil:
	case r.noQuorum:
		signal = failopen.NoQuorum
	case r.unsure:
		signal = failopen.Slow
	default:
		signal = failopen.NoLeader
	}
	w := f.world()
	switch f.machine.Observe(f.now(), signal) {
	case failopen.Started:
		w.stats.Incidents++
		w.stage.Trace("%s decides by itself", f.client.name)
		w.judge.Away(w.stage.Real(), f.client.name, w.limit(rules.Share), rules.SharePPM)
		f.probe()
	case failopen.Ended:
		w.stage.Trace("%s asks again", f.client.name)
		w.judge.Away(w.stage.Real(), f.client.name, w.limit(rules.Share), 0)
		f.report()
	case failopen.None:
	}
}

func (f *fallback) probe() {
	if f.machine.Away() {
		f.world().stage.At(f.client.host, probeEvery, f.probe)
		f.ask()
	}
}

// decide admits what the machine does.
func (f *fallback) decide() {
	w, now := f.world(), f.now()
	if w.trap == trap.FullShare {
		// Ahead of time by what fills the bucket.
		now = now.Add(fillTime)
	}
	n := w.stage.Amount(1, 3)
	verdict := f.machine.Decide(now, failopen.Request{
		Client: f.client.name, Charges: []failopen.Charge{{Limit: rules.Share, Dimension: "requests", Amount: n}},
	})
	if verdict.Admit {
		w.stats.Local += int(n)
		w.judge.SpendLocal(w.stage.Real(), f.client.name, rules.Charges(rules.Share, "", "requests", n)[0], n)
	}
}

// report tells the authority what was admitted, until it is heard.
func (f *fallback) report() {
	pending := f.machine.Pending(64)
	if f.sending || len(pending) == 0 {
		return
	}
	f.sending = true
	c := f.client
	c.call(f.reportOf(pending), time.Second, func(r reply) {
		f.sending = false
		if r.result.GetAdmitted() != nil || f.world().trap == trap.LostReport {
			f.machine.Booked(pending)
			f.booked = pending[0].Tokens
		}
		if refusal := r.result.GetRefusal(); refusal != nil {
			c.world.judge.Complain("reports", "a report of %s is refused: %v", c.name, refusal)
		}
	})
}

func (f *fallback) reportOf(pending []failopen.Account) *logv1.Operation {
	op := &logv1.ReportAdmitted{Session: f.session, Client: f.client.name}
	for _, a := range pending {
		op.Counts = append(op.Counts, &logv1.AdmittedCount{
			Limit: a.Limit, Key: a.Key, Dimension: a.Dimension, Class: a.Class, Tokens: a.Tokens,
		})
	}
	if f.world().trap == trap.NoReportID {
		// Each sending is a report of its own, of what is not known to be booked.
		op.Session = f.client.nextID("r")
		op.Counts[0].Tokens -= f.booked
	}
	return &logv1.Operation{Kind: &logv1.Operation_ReportAdmitted{ReportAdmitted: op}}
}
