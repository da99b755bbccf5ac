package who

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestProblems: everything that is wrong is named at once, by its field.
func TestProblems(t *testing.T) {
	const plain = "correct-horse-battery-staple"
	with := func(change func(c *Config)) Config {
		c := Config{Clients: clients()}
		change(&c)
		return c
	}
	first := func(change func(c *Client)) Config { return with(func(c *Config) { change(&c.Clients[0]) }) }
	for _, test := range []struct {
		name   string
		config Config
		want   string
	}{
		{"nobody", Config{}, "clients: none, and loopback is off: nobody could ask"},
		{"both", with(func(c *Config) { c.Loopback = true }), "loopback: true, and 6 clients"},
		{"too_many", Config{Clients: make([]Client, clientsMax+1)}, "clients: 16385, at most 16384"},
		{"unidentified_off", with(func(c *Config) { c.Unidentified = Off }), "unidentified: off is not shadow to enforce"},
		{"unnamed", with(func(c *Config) { c.Unnamed = 9 }), "unnamed: mode 9 is not off to enforce"},
		{"unmarked", with(func(c *Config) { c.Unmarked = 9 }), "unmarked: mode 9 is not off to enforce"},
		{"classes", with(func(c *Config) { c.Classes = []string{"a", "B"} }), "classes[1]: "},
		{"header", with(func(c *Config) { c.Name = "x id" }), `name header: "x id" is not 1 to 128`},
		{"header_too_long", with(func(c *Config) { c.Tenant = strings.Repeat("x", 129) }), "tenant header: "},
		{
			"header_of_keys", with(func(c *Config) { c.Name = "authorization" }),
			"name header: Authorization is for the keys",
		},
		{"header_of_two", with(func(c *Config) { c.Class = "x-client-id" }), "class header: X-Client-Id is for the name"},
		{"no_name", first(func(c *Client) { c.Name = "" }), `clients[0] "": name: missing`},
		{"name_too_long", first(func(c *Client) { c.Name = strings.Repeat("x", 257) }), "is not 1 to 256 bytes"},
		{"name_of_the_unknown", first(func(c *Client) { c.Name = Unidentified }), `"unidentified" is for those`},
		{"name_twice", first(func(c *Client) { c.Name = "jobs" }), `clients[1] "jobs": name: is another client's, too`},
		{"no_tenant", first(func(c *Client) { c.Tenant = "" }), `clients[0] "web": tenant: missing`},
		{"tenant_of_the_unknown", first(func(c *Client) { c.Tenant = Unidentified }), `tenant: "unidentified" is for`},
		{
			"class_twice", first(func(c *Client) { c.Classes = []string{"a", "a"} }),
			`clients[0] "web": classes[1]: "a" is there twice`,
		},
		{"too_many_classes", first(func(c *Client) { c.Classes = make([]string, 65) }), "classes: 65, at most 64"},
		{"clients_unmarked", first(func(c *Client) { c.Unmarked = 9 }), `clients[0] "web": unmarked: mode 9`},
		{"too_many_keys", first(func(c *Client) { c.Keys = make([]string, 17) }), "keys: 17, at most 16"},
		{
			"a_key_itself", first(func(c *Client) { c.Keys = []string{plain} }),
			`clients[0] "web": keys[0]: 28 characters that are no SHA-256`,
		},
		{"half_a_hash", first(func(c *Client) { c.Keys = []string{HashKey("a")[:32]} }), "keys[0]: 32 characters"},
		{"more_than_a_hash", first(func(c *Client) { c.Keys = []string{HashKey("a") + "00"} }), "keys[0]: 66 characters"},
		{"no_hex", first(func(c *Client) { c.Keys = []string{strings.Repeat("g", 64)} }), "keys[0]: 64 characters"},
		{"hash_of_nothing", first(func(c *Client) { c.Keys = []string{HashKey("")} }), "keys[0]: the SHA-256 of nothing"},
		{
			"key_of_another", first(func(c *Client) { c.Keys = []string{HashKey("desk-key")} }),
			`clients[2] "desk": keys[0]: ` + HashKey("desk-key")[:8] + `… is a key of "web" already`,
		},
		{"key_twice", first(func(c *Client) { c.Keys = append(c.Keys, c.Keys[0]) }), `keys[1]: `},
		{
			"no_key", first(func(c *Client) { c.Keys = nil; c.Name = "alone" }),
			`clients[0] "alone": keys: none, and no other client may speak for it`,
		},
		{
			"speaks_without_a_key", with(func(c *Config) { c.Clients[4].Keys = nil }),
			`clients[4] "edge": keys: none, and it may speak for others`,
		},
		{
			"may_for_nobody", first(func(c *Client) { c.May = []string{"desk", "none"} }),
			`clients[0] "web": may[1]: "none" is no configured client`,
		},
		{
			"tenants_of_nobody", first(func(c *Client) { c.Tenants = []string{"none"} }),
			`clients[0] "web": tenants[0]: "none" has no configured client`,
		},
		{
			"any_of_two_tenants", with(func(c *Config) { c.Clients[5].Any = true }),
			`clients[5] "hub": any: true, as for "edge" of another tenant, "shop"`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, err := New(test.config)
			if err == nil || b != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), plain) {
				t.Errorf("%v has a key in it", err)
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	c := clients()
	c[0].Tenant, c[1].Keys, c[2].Classes = "", make([]string, 17), []string{"A"}
	_, err := New(Config{Clients: c, Unnamed: 9})
	for _, want := range []string{"unnamed: ", `[0] "web": tenant`, `[1] "jobs": keys`, `[2] "desk": classes[0]`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q among it", err, want)
		}
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 4 {
		t.Errorf("%v, want four problems", err)
	}
}

// TestTheConfigurationIsCopied: what its caller does to it later changes nothing.
func TestTheConfigurationIsCopied(t *testing.T) {
	config := Config{Clients: clients()}
	b := book(t, config)
	for i := range config.Clients {
		c := &config.Clients[i]
		for _, list := range [][]string{c.Classes, c.Keys, c.May, c.Tenants} {
			for j := range list {
				list[j] = "other"
			}
		}
		c.Name, c.Any = fmt.Sprint(i), true
	}
	row{request: ask("api-key", "web-key"), want: "web/shop/live"}.check(t, b)
	row{request: ask("api-key", "hub-key", "x-client-id", "desk"), want: "desk/bank/"}.check(t, b)
	row{request: ask("api-key", "edge-key", "x-client-id", "web"), want: "web/shop/live"}.check(t, b)
}
