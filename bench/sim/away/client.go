// Package away is a client of a simulated world that decides by itself while nobody
// answers it: the real machine of client/failopen, its traffic and its report.
package away

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/stage"
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

// Config is what a client needs of its world.
type Config struct {
	Stage *stage.Stage
	Host  *stage.Host
	Judge *judge.Judge
	Trap  trap.Kind
	Name  string
	// Limit is the one that is shared while nobody answers.
	Limit *logv1.Limit
	// Think is the longest pause between two requests; Busy says that anything is asked for.
	Think time.Duration
	Busy  func() bool
	// NextID is a lease id. Call sends an operation and calls done once.
	NextID func(kind string) []byte
	Call   func(op *logv1.Operation, timeout time.Duration, done func(Answer))
	// Incidents and Local count times without answers and tokens admitted meanwhile.
	Incidents, Local *int
}

// Answer is what came of a call.
type Answer struct {
	// Result is nil where nobody answered, and Signal says how.
	Result *logv1.Result
	Signal failopen.Signal
	// Hold spends what was granted, as of a request that was sent then.
	Hold func(op *logv1.Acquire, sent time.Duration)
}

// Client is one client's traffic on the limit that is shared while nobody
// answers: it asks, and when nobody answers the real machine decides.
type Client struct {
	Config
	machine *failopen.Machine
	session []byte
	// sending: a report is under way.
	sending bool
	booked  int64
}

// New is a client that has not started.
func New(config Config) *Client {
	d := config.Limit.GetDimensions()[0]
	share := int64(rules.SharePPM)
	machine, err := failopen.New(failopen.Config{Static: []failopen.Fallback{{
		Limit: rules.Share, Mode: failopen.Share, SharePPM: &share,
		Dimensions: []failopen.Dimension{{
			Name: d.GetName(), Amount: d.GetAmount(), Interval: time.Duration(d.GetInterval()), Burst: d.GetBurst(),
		}},
	}}})
	if err != nil {
		config.Judge.Complain("model", "fallback of %s: %v", config.Name, err)
	}
	session := make([]byte, 16)
	copy(session, "session-"+config.Name)
	return &Client{Config: config, machine: machine, session: session}
}

// Away says that it decides by itself.
func (f *Client) Away() bool { return f.machine.Away() }

// now is the client's clock as a moment.
func (f *Client) now() time.Time { return time.Unix(0, 0).Add(f.Host.Boot()) }

// Act is one request, and those after it.
func (f *Client) Act() {
	f.Stage.At(f.Host, f.Stage.Between(time.Millisecond, f.Think), f.Act)
	if f.machine.Away() {
		f.decide()
		return
	}
	f.report()
	if f.Busy() {
		f.ask()
	}
}

// clock is what the client measures lives with.
func (f *Client) clock() time.Duration {
	if f.Trap == trap.HolderSleeps {
		return f.Host.Mono()
	}
	return f.Host.Boot()
}

// ask is one request; what it gets is spent as any lease is.
func (f *Client) ask() {
	op := &logv1.Acquire{
		LeaseId: f.NextID("u"), Client: f.Name,
		Charges: rules.Charges(rules.Share, "", "requests", f.Stage.Amount(1, 12)),
	}
	sent := f.clock()
	f.Call(rules.Acquire(op), askFor, func(a Answer) {
		f.observe(a.Signal)
		switch {
		case a.Result.GetAcquire().GetGranted():
			a.Hold(op, sent)
		case a.Result == nil && !f.machine.Away():
			// It is decided for this call alone: a share has earned nothing yet.
			f.decide()
		}
	})
}

func (f *Client) observe(signal failopen.Signal) {
	switch f.machine.Observe(f.now(), signal) {
	case failopen.Started:
		*f.Incidents++
		f.Stage.Trace("%s decides by itself", f.Name)
		f.Judge.Away(f.Stage.Real(), f.Name, f.Limit, rules.SharePPM)
		f.probe()
	case failopen.Ended:
		f.Stage.Trace("%s asks again", f.Name)
		f.Judge.Away(f.Stage.Real(), f.Name, f.Limit, 0)
		f.report()
	case failopen.None:
	}
}

func (f *Client) probe() {
	if f.machine.Away() {
		f.Stage.At(f.Host, probeEvery, f.probe)
		f.ask()
	}
}

// decide admits what the machine does.
func (f *Client) decide() {
	now := f.now()
	if f.Trap == trap.FullShare {
		// Ahead of time by what fills the bucket.
		now = now.Add(fillTime)
	}
	n := f.Stage.Amount(1, 3)
	verdict := f.machine.Decide(now, failopen.Request{
		Client: f.Name, Charges: []failopen.Charge{{Limit: rules.Share, Dimension: "requests", Amount: n}},
	})
	if verdict.Admit {
		*f.Local += int(n)
		f.Judge.SpendLocal(f.Stage.Real(), f.Name, rules.Charges(rules.Share, "", "requests", n)[0], n)
	}
}

// report tells the authority what was admitted, until it is heard.
func (f *Client) report() {
	pending := f.machine.Pending(64)
	if f.sending || len(pending) == 0 {
		return
	}
	f.sending = true
	f.Call(f.reportOf(pending), time.Second, func(a Answer) {
		f.sending = false
		if a.Result.GetAdmitted() != nil || f.Trap == trap.LostReport {
			f.machine.Booked(pending)
			f.booked = pending[0].Tokens
		}
		if refusal := a.Result.GetRefusal(); refusal != nil {
			f.Judge.Complain("reports", "a report of %s is refused: %v", f.Name, refusal)
		}
	})
}

func (f *Client) reportOf(pending []failopen.Account) *logv1.Operation {
	op := &logv1.ReportAdmitted{Session: f.session, Client: f.Name}
	for _, a := range pending {
		op.Counts = append(op.Counts, &logv1.AdmittedCount{
			Limit: a.Limit, Key: a.Key, Dimension: a.Dimension, Class: a.Class, Tokens: a.Tokens,
		})
	}
	if f.Trap == trap.NoReportID {
		// Each sending is a report of its own, of what is not known to be booked.
		op.Session = f.NextID("r")
		op.Counts[0].Tokens -= f.booked
	}
	return &logv1.Operation{Kind: &logv1.Operation_ReportAdmitted{ReportAdmitted: op}}
}
