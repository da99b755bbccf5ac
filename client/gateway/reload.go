package gateway

import (
	"fmt"
	"slices"

	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/circuit"
)

// settings are what may change while a gateway runs. They do not change themselves: a call has
// those that it began with.
type settings struct {
	Config
	classes  map[string]*Class
	balances map[*Deployment]*balance
	markers  *attempt.Reader
	// kept are the headers of requests that no provider gets.
	kept headerSet
}

// settle makes settings of a configuration that was checked. before are those in force: what the
// retries of a deployment may cost goes on, by its name. Nil: there are none.
func settle(c *Config, before *settings) (*settings, error) {
	s := &settings{
		Config: *c, classes: make(map[string]*Class, len(c.Classes)),
		balances: make(map[*Deployment]*balance, len(c.Deployments)), kept: namesOf(hop, between, c.Who.Headers()),
	}
	var err error
	if s.markers, err = attempt.NewReader(c.Markers); err != nil {
		return nil, err
	}
	s.Deployments = slices.Clone(c.Deployments)
	for i := range s.Deployments {
		s.balances[&s.Deployments[i]] = before.balance(s.Deployments[i].Name)
	}
	for i := range s.Classes {
		s.classes[s.Classes[i].Name] = &s.Classes[i]
	}
	return s, nil
}

// balance is that of a deployment, a new one where there was none.
func (s *settings) balance(deployment string) *balance {
	if s != nil {
		for d, b := range s.balances {
			if d.Name == deployment {
				return b
			}
		}
	}
	return &balance{}
}

// class is how a request of that class waits.
func (s *settings) class(name string) *Class {
	if class, ok := s.classes[name]; ok {
		return class
	}
	return &s.Classes[0]
}

// actions are what is done with each class while a circuit is open.
func (s *settings) actions() map[string]circuit.Action {
	all := make(map[string]circuit.Action, len(s.classes))
	for name, class := range s.classes {
		all[name] = class.Closed
	}
	return all
}

// Reload puts other clients, deployments, classes and bounds in force: Who, Deployments, Classes,
// Tries, RetryTokens, Pauses, BodyMax, BodiesMax, BodiesClientMax, Markers and NoSharing. What else c has
// is not looked at. Calls that have begun end as they began; attempts, circuits, blocks and
// corrections stay. An error names everything that is wrong, and changes nothing.
func (g *Gateway) Reload(c Config) error {
	c.Authority = g.config.Authority
	if err := c.check(); err != nil {
		return err
	}
	g.reloading.Lock()
	defer g.reloading.Unlock()
	next, err := settle(&c, g.live.Load())
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if err := g.board.Act(next.actions()); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	g.rooms.bound(c.BodiesMax, c.BodiesClientMax)
	g.live.Store(next)
	return nil
}
