package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/client/failopen"
)

func TestValidate(t *testing.T) {
	good := func() client.Config { return client.Config{Endpoints: []string{"127.0.0.1:7101"}, Client: "billing"} }
	for _, c := range []struct {
		name   string
		change func(*client.Config)
		want   string
	}{
		{"no_endpoints", func(c *client.Config) { c.Endpoints = nil }, "endpoints: missing: 1 to 32"},
		{"many_endpoints", func(c *client.Config) { c.Endpoints = make([]string, 33) }, "endpoints: 33, more than 32"},
		{"no_port", func(c *client.Config) { c.Endpoints[0] = "node" }, `endpoints[0]: "node" is not host:port`},
		{"no_client", func(c *client.Config) { c.Client = "" }, "client: missing: 1 to 256 bytes"},
		{"a_client_with_a_line_break", func(c *client.Config) { c.Client = "a\nb" }, "client: "},
		{"deadline", func(c *client.Config) { c.Deadline = 1 }, "deadline: 1ns is out of range 1ms..1h0m0s"},
		{"close", func(c *client.Config) { c.CloseWithin = time.Hour }, "close_within: 1h0m0s is out of range 0..1m0s"},
		{"a_sink", func(c *client.Config) { c.Alerts = []alert.Sink{nil} }, "alerts[0]: missing"},
		{"a_fallback", func(c *client.Config) { c.Fallbacks = []failopen.Fallback{{Limit: "a", Mode: 9}} }, "mode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := good()
			c.change(&config)
			if err := config.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := client.New(config); err == nil {
				t.Error("New took it")
			}
		})
	}
	t.Run("good", func(t *testing.T) {
		if err := good().Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("all_problems_at_once", func(t *testing.T) {
		err := client.Config{Deadline: -1, CloseWithin: -1}.Validate()
		if n := strings.Count(err.Error(), "\n") + 1; n != 4 {
			t.Errorf("%d problems, want 4: %v", n, err)
		}
	})
}

func TestBadRequests(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		defer c.Close()
		one := client.Charge{Limit: "open", Key: "k", Dimension: "requests", Amount: 1}
		with := func(change func(*client.Charge)) client.Request {
			other := one
			change(&other)
			return client.Request{Charges: []client.Charge{other}}
		}
		for want, r := range map[string]client.Request{
			"charges: 0 is out of range 1..16":  {},
			"charges: 17 is out of range 1..16": {Charges: make([]client.Charge, 17)},
			"charges[1]: the same":              {Charges: []client.Charge{one, one}},
			"client: ":                          {Client: strings.Repeat("x", 257), Charges: []client.Charge{one}},
			"class: ":                           {Class: "Live", Charges: []client.Charge{one}},
			"lease_id: ":                        {LeaseID: "xyz", Charges: []client.Charge{one}},
			"charges[0].limit: ":                with(func(c *client.Charge) { c.Limit = "_a" }),
			"charges[0].key: ":                  with(func(c *client.Charge) { c.Key = "a\x00" }),
			"charges[0].dimension: ":            with(func(c *client.Charge) { c.Dimension = "1a" }),
			"charges[0].amount: 0 is out of":    with(func(c *client.Charge) { c.Amount = 0 }),
			"charges[0].amount: 90071992547409": with(func(c *client.Charge) { c.Amount = 1<<53 + 1 }),
		} {
			if _, err := c.Acquire(t.Context(), r); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		used := client.Usage{Dimension: "requests", Used: -1}
		if _, err := c.Settle(t.Context(), client.Lease{Local: true}, used); err == nil {
			t.Error("settled with less than nothing")
		}
	})
}
