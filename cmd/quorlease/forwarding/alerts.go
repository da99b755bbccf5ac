package forwarding

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/gateway/told"
)

// alertsWithin is how long alerts that wait may take to be delivered at the end.
const alertsWithin = 2 * time.Second

// openMax is how many spend caps are remembered until they are over. It is what a receiver is
// told of at once (alert.Config.HeldMax).
const openMax = 256

// alerts take a gateway's incidents to people: that it decides by itself, of which its client
// hears, and spend caps of which no node does. It is safe for concurrent use.
type alerts struct {
	*alert.Notifier
	logger *slog.Logger
	// name is the gateway's at the authority.
	name string
	mu   sync.Mutex
	// open are the beginnings of spend caps that are not over.
	open map[subject]alert.Alert // guarded by mu
}

// subject is what makes two spend caps one incident.
type subject struct{ deployment, reason string }

func newAlerts(name string, logger *slog.Logger, sinks []alert.Sink) *alerts {
	return &alerts{
		Notifier: alert.New(alert.Config{Sinks: sinks, OnFailure: func(f alert.Failure) {
			logger.Warn("alert not delivered", "sink", f.Sink, "kind", f.Alert.Kind, "err", f.Err, "given_up", f.GivenUp)
		}}),
		logger: logger, name: name, open: map[subject]alert.Alert{},
	}
}

// capped hears that a provider has said that money is used up. Where the authority knows, it is
// the nodes that call somebody, once for all gateways.
func (a *alerts) capped(c told.SpendCap) {
	if c.Blocked {
		return
	}
	said := alert.Alert{
		Kind: "SpendCapReached", Name: a.name, ID: rand.Text(), Severity: alert.Critical, Started: time.Now(),
		Text: fmt.Sprintf("The provider of deployment %q says %q: this gateway sends nothing there any more, "+
			"and no limit of the nodes' stands for it.", c.Deployment, c.Reason),
		Labels: map[string]string{"deployment": c.Deployment},
		Values: map[string]string{"reason": c.Reason, "tenant": c.Tenant},
	}
	if c.Scope != "" {
		said.Values["scope"] = string(c.Scope)
	}
	if !c.Resumes.IsZero() {
		said.Values["resumes"] = c.Resumes.UTC().Format(time.RFC3339)
	}
	a.mu.Lock()
	if len(a.open) < openMax {
		a.open[subject{c.Deployment, c.Reason}] = said
	}
	a.mu.Unlock()
	a.Notify(said)
}

// cleared hears that a spend cap is over.
func (a *alerts) cleared(c told.SpendCap) {
	which := subject{c.Deployment, c.Reason}
	a.mu.Lock()
	said, known := a.open[which]
	delete(a.open, which)
	a.mu.Unlock()
	if !known {
		return
	}
	said.Resolved, said.Ended = true, time.Now()
	said.Text = fmt.Sprintf("Work is sent to deployment %q again.", c.Deployment)
	a.Notify(said)
}

// Close delivers what waits, and stops.
func (a *alerts) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), alertsWithin)
	defer cancel()
	if err := a.Notifier.Close(ctx); err != nil {
		// It is no reason to end with an error.
		a.logger.Warn("alerts not delivered", "err", err)
	}
	return nil
}
