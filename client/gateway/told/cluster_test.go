package told

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorlease/quorlease/api/codec"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

const limitsFile = `
limits:
- name: account
  match: {tenant: "*", deployment: "*"}
  per: [tenant, deployment]
  rate: {requests: 600/min}
  target: 90%
- name: second
  match: {tenant: "*", deployment: "*"}
  per: [tenant, deployment]
  rate: {tokens: 600/min}
  target: 90%
- {name: circuit-probes, per: [key], concurrency: 1, lease: 60s}
`

// city is a cluster of three nodes and gateways that ask it.
type city struct {
	*clienttest.Cluster
	t *testing.T
}

// town is one gateway of it.
type town struct {
	*gate
	people
	client *client.Client
	teller *Teller
}

func inCity(t *testing.T, f func(t *testing.T, c *city)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster, err := clienttest.New(3)
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		if err := cluster.LimitsFile(limitsFile); err != nil {
			t.Fatal(err)
		}
		f(t, &city{cluster, t})
	})
}

// town starts a gateway, which ends with the test.
func (c *city) town(name string) *town {
	c.t.Helper()
	made := &town{}
	var err error
	made.client, err = client.New(client.Config{
		Endpoints: c.Endpoints(), Client: name, Dial: c.Dial, Alerts: []alert.Sink{alert.Func(func(alert.Alert) {})},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	config := made.config()
	config.Authority, config.Circuits = made.client, "account"
	if made.teller, err = New(config); err != nil {
		c.t.Fatal(err)
	}
	p, err := NewProber(ProberConfig{Authority: made.client, Shared: made.teller})
	if err != nil {
		c.t.Fatal(err)
	}
	made.gate = &gate{board(c.t, circuit.Config{Shared: p, Prober: p}), p, time.Now()}
	return made
}

// end ends a gateway.
func (g *town) end(t *testing.T) {
	t.Helper()
	for what, closes := range map[string]func() error{"prober": g.prober.Close, "teller": g.teller.Close} {
		if err := closes(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := g.client.Close(); err != nil {
		t.Error(err)
	}
}

// ask is the reason of the denial of work of a tenant, "" where it is granted.
func (g *town) ask(t *testing.T, who string) string {
	t.Helper()
	work := map[string]string{"tenant": who, "deployment": "d"}
	d, err := g.client.Acquire(t.Context(), client.Request{Attributes: work})
	switch {
	case err != nil:
		t.Fatal(err)
	case d.Granted:
		return ""
	}
	g.teller.Denied(d, about(who))
	return d.Denials[0].Reason
}

func (c *city) clear(key string) {
	c.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+c.Endpoints()[0],
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(c.Dial),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.New())))
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	for _, limit := range []string{"account", "second"} {
		_, err = quorleasev1.NewLimitsClient(conn).Adjust(c.t.Context(), &quorleasev1.LimitsAdjustRequest{
			Limit: limit, Key: key, Reason: "paid",
			Change: &quorleasev1.LimitsAdjustRequest_ClearBlock{ClearBlock: true},
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestGatewaysOfOneAuthority(t *testing.T) {
	t.Run("S1-05_what_one_was_told_closes_the_circuit_of_another_and_one_probe_opens_both", func(t *testing.T) {
		inCity(t, func(t *testing.T, c *city) {
			one, other := c.town("one"), c.town("other")
			defer one.end(t)
			defer other.end(t)
			pass(second)
			one.teller.Tell(about("a"), throttled(22*second))
			pass(100 * time.Millisecond)
			if why := other.ask(t, "a"); why != "PAUSED" {
				t.Fatalf("%q, want PAUSED", why)
			}
			if why := other.ask(t, "b"); why != "" {
				t.Errorf("another tenant: %q", why)
			}
			pass(100 * time.Millisecond)
			for name, g := range map[string]*town{"one": one, "other": other} {
				try, v := g.forward()
				if try != nil || v.Left < 21*second || v.Left > 22*second {
					t.Errorf("%s: %+v, want 22 s left", name, v)
				}
			}
			pass(25 * second)
			try := probing(t, one.gate, 3*second)
			if try == nil || probing(t, other.gate, 5*second) != nil {
				t.Fatal("no probe, or two")
			}
			try.Done(one.now(), circuit.Succeeded, 0)
			pass(100 * time.Millisecond)
			for end := other.now() + 4*second; ; pass(100 * time.Millisecond) {
				if try, v := other.forward(); try != nil && !v.Probe {
					break
				} else if try != nil || other.now() > end {
					t.Fatalf("%+v, want it to go on without a probe", v)
				}
			}
		})
	})
	t.Run("S2-16_a_circuit_of_one_is_a_pause_for_the_tenant", func(t *testing.T) {
		inCity(t, func(t *testing.T, c *city) {
			one, other := c.town("one"), c.town("other")
			defer one.end(t)
			defer other.end(t)
			pass(second)
			opens(t, one.Board, one.now(), "a", 0)
			pass(second)
			if why := other.ask(t, "a"); why != "PAUSED" || other.ask(t, "b") != "" {
				t.Errorf("%q, want PAUSED, and nothing for another tenant", why)
			}
			pass(100 * time.Millisecond)
			if v := other.Call("a", "d", circuit.Shed).Look(other.now()); v.Left < 28*second || v.Left > 29*second {
				t.Errorf("%+v, want some 29 s left", v)
			}
		})
	})
}

func TestReportsToAnAuthority(t *testing.T) {
	t.Run("S3-27_blocked_for_all_until_an_operator_clears_it", func(t *testing.T) {
		inCity(t, func(t *testing.T, c *city) {
			one, other := c.town("one"), c.town("other")
			defer one.end(t)
			defer other.end(t)
			pass(second)
			for range 5 {
				one.teller.Tell(about("a"), enforced(t))
				pass(second)
			}
			if why := other.ask(t, "a"); why != "BLOCKED" || other.ask(t, "b") != "" {
				t.Errorf("%q, want BLOCKED, and nothing for another tenant", why)
			}
			pass(time.Minute)
			one.want(t, 1, 0)
			if !one.called[0].Blocked {
				t.Errorf("called for %+v", one.called[0])
			}
			c.clear("a|d")
			pass(11 * second)
			one.want(t, 1, 1)
			if why := other.ask(t, "a"); why != "" {
				t.Errorf("cleared: %q", why)
			}
			one.teller.Tell(about("a"), enforced(t))
			pass(second)
			one.want(t, 2, 1)
		})
	})
	t.Run("S2-35_more_buckets_than_one_report_may_have", func(t *testing.T) {
		inCity(t, func(t *testing.T, c *city) {
			one := c.town("one")
			defer one.end(t)
			pass(second)
			for n := range 200 {
				one.teller.Tell(about(fmt.Sprint(n)), throttled(30*second))
			}
			nowhere := About{Deployment: "d", Attributes: map[string]string{"tenant": "200"}}
			one.teller.Tell(nowhere, &provider.Verdict{Class: provider.Overload})
			pass(2 * second)
			if s := one.teller.Stats(); s.Told != 201 || s.Refused != 0 || s.Unheard != 1 || s.Waiting != 0 {
				t.Errorf("%+v, want 200 that are heard and one that nobody hears", s)
			}
			if why := one.ask(t, "199"); why != "PAUSED" {
				t.Errorf("%q, want PAUSED", why)
			}
		})
	})
}
