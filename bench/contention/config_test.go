package contention

import (
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Processes are started by one goroutine that stays for good.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good := Default()
	if err := good.Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	for want, change := range map[string]func(*Config){
		`--path "fax" is none of unary, session, client, limiter`: func(c *Config) { c.Path = "fax" },
		`--on-quorum-loss "ajar" is none of open, closed`:         func(c *Config) { c.OnLoss = "ajar" },
		`--callers 0 is outside 1 to 10000`:                       func(c *Config) { c.Callers = 0 },
		`--keys 100001 is outside 1 to 100000`:                    func(c *Config) { c.Keys = 100_001 },
		`--rounds 0 is outside 1 to 100`:                          func(c *Config) { c.Rounds = 0 },
		`--limit-rate -1 is outside 0 to 9007199254740992`:        func(c *Config) { c.LimitRate = -1 },
		`--limit-burst 0 is outside 1 to 9007199254740992`:        func(c *Config) { c.LimitBurst = 0 },
		`--warmup -1s is outside 0s to 1h0m0s`:                    func(c *Config) { c.Warmup = -time.Second },
		`--length 10ms is outside 100ms to 1h0m0s`:                func(c *Config) { c.Length = 10 * time.Millisecond },
		`--timeout 0s is outside 1ms to 1h0m0s`:                   func(c *Config) { c.Timeout = 0 },
		`--rate -1 is outside 0 to 10000000`:                      func(c *Config) { c.Rate = -1 },
		`--rate NaN is outside 0 to 10000000`:                     func(c *Config) { c.Rate = math.NaN() },
		`--distribution: "cold" is none of hot, uniform, zipf`:    func(c *Config) { c.Distribution = "cold" },
		`--arrivals "bursty" is none of poisson, even`:            func(c *Config) { c.Arrivals = "bursty" },
		`--rounds 3: with a fault there is one round`:             func(c *Config) { c.Faults.StopNode = 1 },
		`--kill-leader-every 1ms is shorter than 500ms`: func(c *Config) {
			c.Faults.KillLeaderEvery = time.Millisecond
		},
		`--kill-leader-every -1s is shorter than 500ms`: func(c *Config) {
			c.Faults.KillLeaderEvery = -time.Second
		},
		`--kill-leader-every 5s is not shorter than --length 5s: none would be killed`: func(c *Config) {
			c.Faults.KillLeaderEvery = 5 * time.Second
		},
		`--stop-node 4 is outside 1 to 3`:  func(c *Config) { c.Faults.StopNode = 4 },
		`--stop-node -1 is outside 1 to 3`: func(c *Config) { c.Faults.StopNode = -1 },
		`--stop-node 5s is outside 0s to --length 5s`: func(c *Config) {
			c.Faults = Faults{StopNode: 1, StopNodeAt: 5 * time.Second}
		},
		`--lose-quorum-at -1s is outside 0s to --length 5s`: func(c *Config) {
			c.Faults = Faults{LoseQuorum: true, LoseQuorumAt: -time.Second}
		},
		`--lose-quorum-for 0s is not positive`: func(c *Config) { c.Faults = Faults{LoseQuorum: true} },
		`--endpoints names nodes that are not this run's: it do`: func(c *Config) {
			c.Endpoints, c.Faults.StopNode = []string{"a:1"}, 1
		},
	} {
		bad := Default()
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	s := newSaboteur(nil)
	faults := Faults{
		KillLeaderEvery: 3 * time.Second, StopNode: 2, StopNodeAt: 4 * time.Second,
		LoseQuorum: true, LoseQuorumAt: 5 * time.Second, LoseQuorumFor: 2 * time.Second,
	}
	var got []string
	for _, one := range s.plan(&faults, 7*time.Second) {
		got = append(got, one.at.String())
	}
	// Kills at 3 s and 6 s, each with a start half the distance later.
	if want := "3s 4s 4.5s 5s 6s 7s 7.5s"; strings.Join(got, " ") != want {
		t.Errorf("steps at %v, want %s", got, want)
	}
}

// A run that can't begin says why and leaves nothing behind.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	bad := Default()
	bad.Callers = 0
	if _, err := Run(t.Context(), bad); err == nil {
		t.Error("no callers: no error")
	}
	none := Default()
	none.Binary, none.Dir = "/nonexistent/quorlease", t.TempDir()
	if _, err := Run(t.Context(), none); err == nil || !strings.Contains(err.Error(), "start node n1") {
		t.Errorf("no program: %v", err)
	}
}
