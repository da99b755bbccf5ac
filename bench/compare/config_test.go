package compare

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/compare/redis"
)

// TestBesideRedis runs the real thing for a moment, where there is one. Otherwise it
// is named as not measured.
func TestBesideRedis(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Quick()
	c.Dir, c.Callers = t.TempDir(), 8
	all := slices.DeleteFunc(theirs(), func(e entrant) bool { return e.name != "redis-memory" })
	r, err := compare(t.Context(), &c, all)
	if err != nil {
		t.Fatal(err)
	}
	if peer.Find("", redis.Program) == "" {
		if len(r.Missing) != 1 || r.Missing[0].How != redis.Program.How {
			t.Errorf("missing %+v", r.Missing)
		}
		return
	}
	for _, s := range r.Sides {
		if s.Summary.Granted == 0 || s.Summary.Failed != 0 || s.Summary.Denied != 0 {
			t.Errorf("%s: %+v", s.Side, s.Summary)
		}
	}
	if len(r.Sides) != 2 || len(r.Trials) != 1 || r.Trials[0].Over == 0 {
		t.Errorf("%d sides; killed: %+v; it keeps nothing", len(r.Sides), r.Trials)
	}
	// Nothing is left behind but what it was told to write.
	if files, err := os.ReadDir(c.Dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

// TestDocs: how to get a program is said once in the program and once in docs, alike,
// and the Makefile gets the same.
func TestDocs(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	docs, makefile := read("../../docs/operating/comparing.md"), read("../../Makefile")
	reference := read("../../docs/reference/bench.md")
	for _, e := range entrants() {
		for _, program := range e.needs {
			built := strings.HasPrefix(program.How, "go install ")
			if built && (!strings.Contains(docs, program.How) || !strings.Contains(makefile, program.How)) {
				t.Errorf("%q is not in the docs or not in the Makefile", program.How)
			}
			if debian, found := strings.CutPrefix(program.How, "apt-get install "); found == built ||
				found && !strings.Contains(docs, debian) {
				t.Errorf("%q is not in the docs", program.How)
			}
		}
		for _, s := range e.sides {
			if !strings.Contains(reference, "`"+s.slug+"`") {
				t.Errorf("side %s is not in the reference", s.slug)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good := Default()
	good.Require, good.Without = []string{"etcd"}, []string{"gubernator"}
	if err := good.Validate(); err != nil {
		t.Errorf("good: %v", err)
	}
	for want, change := range map[string]func(*Config){
		"--callers 0 is outside 1 to 4096":                     func(c *Config) { c.Callers = 0 },
		"--keys 10001 is outside 1 to 10000":                   func(c *Config) { c.Keys = 10_001 },
		"--rounds 0 is outside 1 to 100":                       func(c *Config) { c.Rounds = 0 },
		"--warmup -1s is outside 0s to 1m0s":                   func(c *Config) { c.Warmup = -time.Second },
		"--length 10ms is outside 100ms to 1m0s":               func(c *Config) { c.Length = 10 * time.Millisecond },
		"--timeout 2m0s is outside 1ms to 1m0s":                func(c *Config) { c.Timeout = 2 * time.Minute },
		"--paced-rate 0 is outside 1 to 1000000":               func(c *Config) { c.PacedRate = 0 },
		`--distribution: "cold" is none of hot, uniform, zipf`: func(c *Config) { c.Distribution = "cold" },
		`--require "nginx" is none of ratelimit, `:             func(c *Config) { c.Require = []string{"nginx"} },
		`--without "nginx" is none of ratelimit, `:             func(c *Config) { c.Without = []string{"nginx"} },
		`--without etcd: --require asks for it`: func(c *Config) {
			c.Require, c.Without = []string{"etcd"}, []string{"etcd"}
		},
	} {
		bad := Default()
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := Run(t.Context(), bad); err == nil {
			t.Errorf("a run with %s: no error", want)
		}
	}
}
