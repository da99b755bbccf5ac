package gateway

import (
	"fmt"
	"slices"

	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/internal/header"
	"github.com/quorlease/quorlease/fsm/retry"
)

// settings are what may change while a gateway runs. They do not change themselves: a call has
// those that it began with.
type settings struct {
	Config
	classes  map[string]*Class
	balances map[*Deployment]*balance
	markers  *attempt.Reader
	// kept are the headers of requests that no provider gets.
	kept header.Set
	// generation numbers them: answers are shared within one.
	generation uint64
}

// settle makes settings of a configuration that was checked. before are those in force: what the
// retries of a deployment may cost goes on by its name, while the rule is the same. Nil: there are none.
func settle(c *Config, before *settings) (*settings, error) {
	s := &settings{
		Config: *c, classes: make(map[string]*Class, len(c.Classes)),
		balances: make(map[*Deployment]*balance, len(c.Deployments)), kept: header.Kept(c.Who.Headers()),
	}
	if before != nil {
		s.generation = before.generation + 1
	}
	var err error
	if s.markers, err = attempt.NewReader(c.Markers); err != nil {
		return nil, err
	}
	s.Deployments = slices.Clone(c.Deployments)
	for i := range s.Deployments {
		s.balances[&s.Deployments[i]] = before.balance(s.Deployments[i].Name, c.RetryTokens)
	}
	for i := range s.Classes {
		s.classes[s.Classes[i].Name] = &s.Classes[i]
	}
	return s, nil
}

// balance is that of a deployment, a new one where there was none, or one under another rule.
func (s *settings) balance(deployment string, rule retry.TokenRule) *balance {
	if s != nil && s.RetryTokens == rule {
		for d, b := range s.balances {
			if d.Name == deployment {
				return b
			}
		}
	}
	return &balance{}
}

// named is the deployment of that name, which is there.
func (s *settings) named(name string) *Deployment {
	return &s.Deployments[slices.IndexFunc(s.Deployments, func(d Deployment) bool { return d.Name == name })]
}

// class is how a request of that class waits.
func (s *settings) class(name string) *Class {
	if class, ok := s.classes[name]; ok {
		return class
	}
	return &s.Classes[0]
}

// pays says whether a deployment is still there, and the same account as before.
func (s *settings) pays(before *Deployment) bool {
	return slices.ContainsFunc(s.Deployments, func(d Deployment) bool {
		return d.Name == before.Name && d.Key == before.Key && d.Upstream.String() == before.Upstream.String()
	})
}

// Reload puts other clients, deployments, classes and bounds in force: Who, Deployments, Classes,
// Tries, RetryTokens, Pauses, Fallback, BodyMax, BodiesMax, BodiesClientMax, Markers, NoSharing, Replays and
// Shadow. What else c has is not looked at. Calls that have begun end as they began; attempts, circuits, blocks and
// corrections stay, but for a spend cap that no node blocks, of a deployment that is gone or has
// another Key or Upstream. An error names everything that is wrong, and changes nothing.
func (g *Gateway) Reload(c Config) error {
	c.Authority = g.config.Authority
	if err := c.check(); err != nil {
		return err
	}
	g.reloading.Lock()
	defer g.reloading.Unlock()
	next, err := settle(&c, g.live.Load())
	if err == nil {
		err = g.replays.Bound(c.Replays)
	}
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	g.rooms.Bound(c.BodiesMax, c.BodiesClientMax)
	before := g.live.Swap(next)
	for i := range before.Deployments {
		if d := &before.Deployments[i]; !next.pays(d) {
			g.teller.Cleared(d.Name)
		}
	}
	return nil
}
