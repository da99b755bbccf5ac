// Package alarm turns a node's events into alerts: one when an incident begins,
// one when it is over (G8).
package alarm

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/incident"
)

// Config says whose events go where.
type Config struct {
	// Node is the node's name.
	Node string
	// Link is where the node can be looked at: the URL of its HTTP port.
	Link string
	// Events are the node's. Required.
	Events *events.Ring
	// Leads says whether this node leads, or another does as far as this one knows. It
	// is asked every second, and at every event. Nil: this node always does.
	Leads func() (here, elsewhere bool)
	// HasQuorum says how it stands now, Firing whether that of a client is not over.
	// They are asked when events were missed. Nil: nobody knows.
	HasQuorum func() bool
	Firing    func(kind events.Kind, client string) bool
	// Targets get the alerts.
	Targets Targets
	// Registerer gets the figures of deliveries. Nil: nobody does.
	Registerer prometheus.Registerer
	// Logger hears of deliveries that fail. Nil: nobody does.
	Logger hclog.Logger
}

// Alarm reads a node's events until the ring is closed.
type Alarm struct {
	config Config
	// node tells of the node, clients of clients: however many of them storm, they
	// take no room from a quorum that is lost.
	node, clients *alert.Notifier
	open          incidents
	duty          duty
	// crowded counts incidents of clients that were one too many, by receivers.
	crowded   atomic.Uint64
	receivers uint64
	cancel    context.CancelFunc
	reading   sync.WaitGroup
}

// Open starts to read, from the first event that is kept.
func Open(c Config) (*Alarm, error) {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	sinks, err := c.Targets.Sinks()
	if err != nil {
		return nil, err
	}
	more, err := c.Targets.Sinks()
	if err != nil {
		return nil, err
	}
	everything := uint64(0)
	subscription, err := c.Events.Subscribe(&everything)
	if err != nil {
		return nil, err
	}
	return start(c, subscription, sinks, more), nil
}

// start begins to read: what it finds out of the node goes to sinks, of clients to more.
func start(c Config, s *events.Subscription, sinks, more []alert.Sink) *Alarm {
	ctx, cancel := context.WithCancel(context.Background())
	a := &Alarm{config: c, open: newIncidents(c.Node, c.Link), receivers: uint64(len(sinks)), cancel: cancel}
	a.duty.sure = time.Now().Add(-doubt)
	a.node = alert.New(alert.Config{Sinks: sinks, OnFailure: a.failed})
	a.clients = alert.New(alert.Config{Sinks: more, OnFailure: a.failed})
	a.register(c.Registerer)
	a.reading.Go(func() { a.read(ctx, s) })
	return a
}

// register exports what became of the alerts.
func (a *Alarm) register(r prometheus.Registerer) {
	if r == nil {
		return
	}
	for _, figure := range []struct {
		name, help string
		count      func(alert.Counts) uint64
	}{
		{
			"quorlease_alerts_delivered_total", "Alerts that a receiver took, beginnings and ends.",
			func(c alert.Counts) uint64 { return c.Delivered },
		},
		{
			"quorlease_alerts_failed_total", "Tries to deliver an alert that failed.",
			func(c alert.Counts) uint64 { return c.Failed },
		},
		{
			"quorlease_alerts_dropped_total", "Incidents of which a receiver was not told.",
			func(c alert.Counts) uint64 { return c.Dropped + a.crowded.Load() },
		},
	} {
		r.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: figure.name, Help: figure.help},
			func() float64 { return float64(figure.count(a.counts())) },
		))
	}
}

// counts are those of both notifiers.
func (a *Alarm) counts() alert.Counts {
	one, other := a.node.Counts(), a.clients.Counts()
	return alert.Counts{
		Delivered: one.Delivered + other.Delivered, Failed: one.Failed + other.Failed, Dropped: one.Dropped + other.Dropped,
	}
}

func (a *Alarm) read(ctx context.Context, s *events.Subscription) {
	for {
		next, cancel := context.WithTimeout(ctx, lookEvery)
		event, err := s.Next(next)
		cancel()
		a.look(time.Now())
		var lost *events.LostError
		switch {
		case err == nil:
			a.notify(event)
		case errors.As(err, &lost):
			a.missed()
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		default:
			return
		}
	}
}

// missed ends what is over, because its end may be among the events that were lost.
func (a *Alarm) missed() {
	if a.config.HasQuorum != nil && a.config.HasQuorum() {
		a.notify(events.Event{Kind: events.QuorumRestored, Time: time.Now(), Text: "there is a quorum"})
	}
	if a.config.Firing == nil {
		return
	}
	for which := range a.open.open {
		if which.OfClient() && !a.config.Firing(which.Kind, which.Client) {
			a.notify(events.Event{
				Kind: which.Kind, Severity: events.Info, Time: time.Now(), Client: which.Client,
				Text: which.Client + " is below again",
			})
		}
	}
}

func (a *Alarm) notify(event events.Event) {
	if event.Kind == events.LimitBlocked {
		// It is shown, and somebody decided it: nobody is called for that.
		return
	}
	which, turn := incident.Of(event, event.Client)
	if which.OfClient() && turn == incident.Begins && len(a.open.open) >= incidentsMax {
		if a.duty.leads {
			a.crowded.Add(a.receivers)
		}
		return
	}
	said, ok := a.open.observe(event, time.Now())
	if !ok {
		return
	}
	to := a.notifier(which)
	switch {
	case which.Shared() && !a.duty.leads:
		a.duty.keep(said, to)
	case said.over:
		to.Notify(said.end)
	default:
		to.Notify(said.begin)
	}
}

// notifier is whose receivers are told of an incident.
func (a *Alarm) notifier(which incident.Subject) *alert.Notifier {
	if which.OfClient() {
		return a.clients
	}
	return a.node
}

func (a *Alarm) failed(f alert.Failure) {
	if f.GivenUp {
		a.config.Logger.Error("alert given up", "reason", f.Alert.Kind, "err", f.Err)
		return
	}
	a.config.Logger.Warn("alert not delivered, trying again", "reason", f.Alert.Kind, "err", f.Err)
}

const (
	// readMax is how long Close waits for the ring's end: it is closed by then,
	// unless the node hangs.
	readMax = 200 * time.Millisecond
	// flushMax is how long Close waits for what is under way.
	flushMax = 2 * time.Second
)

// Close stops once everything in the ring, which ought to be closed, was read
// and delivered, or after a few seconds. It is idempotent.
func (a *Alarm) Close() {
	timer := time.AfterFunc(readMax, a.cancel)
	defer timer.Stop()
	a.reading.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), flushMax)
	defer cancel()
	var clients error
	var closing sync.WaitGroup
	closing.Go(func() { clients = a.clients.Close(ctx) })
	err := a.node.Close(ctx)
	closing.Wait()
	if err = errors.Join(err, clients); err != nil {
		a.config.Logger.Warn("alerts not delivered", "err", err)
	}
	a.cancel()
}
