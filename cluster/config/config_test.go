package config

import (
	"net"
	"strings"
	"testing"
)

func validConfig() Config {
	c := Default()
	c.ID, c.DataDir, c.Peer = "a", "/data", "127.0.0.1:7201"
	return c
}

func TestValidate(t *testing.T) {
	t.Parallel()
	valid := validConfig()
	if err := valid.Validate(); err != nil {
		t.Fatalf("the defaults are refused: %v", err)
	}
	for _, c := range []struct {
		name   string
		change func(*Config)
		// want are words that the error must have.
		want []string
	}{
		{"no id", func(c *Config) { c.ID = "" }, []string{"--id"}},
		{"id with a space", func(c *Config) { c.ID = "a b" }, []string{"--id", "a b"}},
		{"no data", func(c *Config) { c.DataDir = "" }, []string{"--data"}},
		{"no peer", func(c *Config) { c.Peer = "" }, []string{"--peer"}},
		{"peer without port", func(c *Config) { c.Peer = "127.0.0.1" }, []string{"--peer", "127.0.0.1"}},
		{"beyond loopback", func(c *Config) { c.Peer = "10.0.0.1:7201" }, []string{"--peer", "10.0.0.1:7201", "--insecure"}},
		{"everywhere", func(c *Config) { c.Peer = ":7201" }, []string{"--peer", "--insecure", "--advertise-peer"}},
		{"nothing to advertise", func(c *Config) { c.Peer, c.Insecure = "0.0.0.0:7201", true }, []string{"--advertise-peer"}},
		{"advertised port 0", func(c *Config) { c.AdvertisePeer = "h:0" }, []string{"--advertise-peer", "h:0"}},
		{"join", func(c *Config) { c.Join = []string{"h:1", "h"} }, []string{"--join", `"h"`}},
		{"expect nobody", func(c *Config) { c.BootstrapExpect = -1 }, []string{"--bootstrap-expect", "-1", "0", "9"}},
		{"expect a crowd", func(c *Config) { c.BootstrapExpect = 10 }, []string{"--bootstrap-expect", "10", "9"}},
		{"expect without join", func(c *Config) { c.BootstrapExpect = 3 }, []string{"--bootstrap-expect", "--join"}},
		{"learner alone", func(c *Config) { c.Learner = true }, []string{"--learner", "--join"}},
		{
			"learner and founder", func(c *Config) { c.Learner, c.BootstrapExpect, c.Join = true, 3, []string{"h:1"} },
			[]string{"--learner", "--bootstrap-expect 3"},
		},
		{"multiplier 0", func(c *Config) { c.RaftMultiplier = 0 }, []string{"--raft-multiplier", "0", "1", "20"}},
		{"multiplier 21", func(c *Config) { c.RaftMultiplier = 21 }, []string{"--raft-multiplier", "21", "20"}},
		{"no pending", func(c *Config) { c.MaxPending = 0 }, []string{"MaxPending", "0"}},
		{"no wait", func(c *Config) { c.MaxWait = 0 }, []string{"MaxWait"}},
		{"no trailing logs", func(c *Config) { c.TrailingLogs = 0 }, []string{"--trailing-logs 0"}},
		{"no snapshots", func(c *Config) { c.SnapshotThreshold = 0 }, []string{"--snapshot-threshold 0", "at least 1"}},
		{"too many names", func(c *Config) { c.TopClients = 101 }, []string{"--top-clients 101", "0 to 100"}},
		{"no audit file is kept", func(c *Config) { c.AuditKeep = 0 }, []string{"--audit-keep 0", "at least 1"}},
		{"no room for audit", func(c *Config) { c.AuditBytes = 0 }, []string{"--audit-bytes 0", "at least 1"}},
		{"negative space", func(c *Config) { c.MinFreeBytes = -1 }, []string{"--min-free-bytes -1"}},
		{"two problems", func(c *Config) { c.ID, c.DataDir = "", "" }, []string{"--id", "--data"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := validConfig()
			c.change(&config)
			err := config.Validate()
			if err == nil {
				t.Fatal("accepted")
			}
			for _, word := range c.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not name %q", err, word)
				}
			}
		})
	}
}

func TestAdvertised(t *testing.T) {
	t.Parallel()
	bound := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4242}
	for _, c := range []struct{ peer, advertise, want string }{
		{"127.0.0.1:7201", "", "127.0.0.1:7201"},
		{"localhost:0", "", "localhost:4242"},
		{"0.0.0.0:7201", "node-a.quorlease:7201", "node-a.quorlease:7201"},
	} {
		config := Config{Peer: c.peer, AdvertisePeer: c.advertise}
		if got := config.Advertised(bound); got != c.want {
			t.Errorf("%s and %q: %s, want %s", c.peer, c.advertise, got, c.want)
		}
	}
}
