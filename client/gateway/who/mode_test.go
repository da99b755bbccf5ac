package who

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestSteps: each rule that can be rolled out in steps, in each of its steps.
func TestSteps(t *testing.T) {
	keyed := func(pairs ...string) *http.Request { return ask(append([]string{"x-api-key", "web-key"}, pairs...)...) }
	for _, test := range []struct {
		name    string
		set     func(*Config, Mode)
		least   Mode
		request *http.Request
		rule    Rule
		// client is who it is where it passes.
		client string
	}{
		{"S1-47_no_key", func(c *Config, m Mode) { c.Unidentified = m }, Shadow, ask(), NoCredential, Unidentified},
		{
			"S1-47_no_key_and_a_name", func(c *Config, m Mode) { c.Unidentified = m }, Shadow,
			ask("x-client-id", "web"), NoCredential, Unidentified,
		},
		{
			"S1-47_nobodys_key", func(c *Config, m Mode) { c.Unidentified = m }, Shadow,
			ask("api-key", "other"), UnknownCredential, Unidentified,
		},
		{"S1-47_no_name", func(c *Config, m Mode) { c.Unnamed = m }, Off, keyed(), NoName, "web"},
		{"S1-46_no_marker", func(c *Config, m Mode) { c.Unmarked = m }, Off, keyed(), NoMarker, "web"},
		{
			"S1-46_a_marker_that_is_none", func(c *Config, m Mode) { c.Unmarked = m }, Off,
			keyed("x-retry-attempt", "-1"), NoMarker, "web",
		},
		{
			"S1-46_no_marker_of_one_client", func(c *Config, m Mode) { c.Clients[0].Unmarked = m }, Off,
			keyed(), NoMarker, "web",
		},
	} {
		for mode := test.least; mode <= Enforce; mode++ {
			t.Run(test.name+"_"+mode.String(), func(t *testing.T) {
				config := Config{Clients: clients()}
				test.set(&config, mode)
				id, no := book(t, config).Identify(test.request)
				if mode == Enforce {
					if no == nil || no.Reason != rules[test.rule].reason || id.Client != "" {
						t.Fatalf("%+v, refused %+v, want refused for %s", id, no, test.rule)
					}
				} else if no != nil || id.Client != test.client {
					t.Fatalf("%+v, refused %+v, want %s", id, no, test.client)
				}
				want := []Rule{test.rule}
				if mode == Off {
					want = nil
				}
				if !slices.Equal(id.Found, want) {
					t.Errorf("found %q, want %q", id.Found, want)
				}
				if told := len(id.Warnings) == 1; told != (mode == Warn) {
					t.Errorf("warnings %q", id.Warnings)
				}
				for _, text := range id.Warnings {
					if !strings.HasPrefix(text, string(test.rule)+": ") || strings.ContainsFunc(text, isNotVisible) {
						t.Errorf("%q is no text for a header, or not about %s", text, test.rule)
					}
				}
			})
		}
	}
}

func isNotVisible(r rune) bool { return r < ' ' || r > '~' }

// TestUnidentified: all of them are one client, which has no more than it is given.
func TestUnidentified(t *testing.T) {
	b := book(t, Config{Unidentified: Warn, Classes: []string{"rest", "batch"}})
	for _, row := range []row{
		{"one_name_for_all", ask("x-client-id", "me"), "unidentified/unidentified/rest", ""},
		{"whatever_it_says", ask("api-key", "x", "x-client-id", "desk"), "unidentified/unidentified/rest", ""},
		{"a_class", ask("x-quorlease-class", "batch"), "unidentified/unidentified/batch", ""},
		{"a_class_of_others", ask("x-quorlease-class", "live"), "", ForeignClass},
		{"a_tenant", ask("x-quorlease-tenant", "shop"), "", ForeignTenant},
		{"two_names", ask("x-client-id", "me", "x-client-id", "you"), "", Repeated},
		{"S1-26_a_known_key_with_another_name", ask("api-key", "web-key", "x-client-id", "desk"), "", ForeignName},
		{"S1-26_keys_of_two", ask("api-key", "web-key", "x-api-key", "desk-key"), "", Ambiguous},
		{"who_is_known_stays_so", ask("api-key", "web-key"), "web/shop/live", ""},
	} {
		t.Run(row.name, func(t *testing.T) { row.check(t, b) })
	}
	if id, _ := b.Identify(ask()); id.Keyed || id.Shares() != "" {
		t.Errorf("%+v shares answers with %q, want nobody", id, id.Shares())
	}
	t.Run("without_clients", func(t *testing.T) {
		b := book(t, Config{Clients: []Client{}, Unidentified: Shadow})
		row{request: ask("x-client-id", "me"), want: "unidentified/unidentified/"}.check(t, b)
		row{request: ask("x-quorlease-class", "live"), rule: ForeignClass}.check(t, b)
	})
	t.Run("on_loopback", func(t *testing.T) {
		b := book(t, Config{Loopback: true, Unidentified: Warn})
		row{request: loopback(), want: "unidentified/unidentified/"}.check(t, b)
		row{request: ask(), rule: Elsewhere}.check(t, b)
		row{request: loopback("x-quorlease-class", "live"), rule: ForeignClass}.check(t, b)
	})
}

func TestMarkers(t *testing.T) {
	config := Config{Clients: clients(), Unmarked: Enforce}
	config.Clients[2].Unmarked = Off
	b := book(t, config)
	get := ask("api-key", "web-key")
	get.Method = http.MethodGet
	for _, row := range []row{
		{"S1-46_declared", ask("api-key", "web-key", "x-retry-attempt", "0"), "web/shop/live", ""},
		{"S1-46_declared_by_an_sdk", ask("api-key", "web-key", "x-stainless-retry-count", "0"), "web/shop/live", ""},
		{"S1-46_missing", ask("api-key", "web-key"), "", NoMarker},
		{"S1-46_invalid", ask("api-key", "web-key", "x-retry-attempt", "one"), "", NoMarker},
		{"S1-46_no_work", get, "web/shop/live", ""},
		{"S1-46_excepted", ask("api-key", "desk-key"), "desk/bank/", ""},
		{"S1-46_the_excepted_does_not_speak", ask("api-key", "hub-key", "x-client-id", "vault"), "", NoMarker},
		{"S1-46_spoken_for", ask("api-key", "hub-key", "x-client-id", "desk"), "desk/bank/", ""},
		{"S1-46_any_other", ask("api-key", "edge-key", "x-client-id", "till-7"), "", NoMarker},
	} {
		t.Run(row.name, func(t *testing.T) { row.check(t, b) })
	}
	row{name: "on_loopback", request: loopback("x-client-id", "me"), rule: NoMarker}.
		check(t, book(t, Config{Loopback: true, Unmarked: Enforce}))
	row{name: "unidentified", request: ask(), rule: NoMarker}.
		check(t, book(t, Config{Unidentified: Warn, Unmarked: Enforce}))
}

func TestModeWords(t *testing.T) {
	for text, want := range map[string]Mode{
		"": Default, "off": Off, "shadow": Shadow, "warn": Warn, "enforce": Enforce,
	} {
		var got Mode
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
		if text != "" && want.String() != text {
			t.Errorf("%v, want %q", want, text)
		}
	}
	for _, text := range []string{"default", "Off", "on", " off", strings.Repeat("x", 1000)} {
		m := Warn
		err := m.UnmarshalText([]byte(text))
		if err == nil || len(err.Error()) > 100 || m != Warn {
			t.Errorf("%q: %v, %v, want an error, and Warn left alone", text, m, err)
		}
	}
	if got := Mode(9).String(); got != "mode 9" {
		t.Errorf("%q", got)
	}
}
