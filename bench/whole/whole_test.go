package whole

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/disturb"
	"github.com/quorlease/quorlease/bench/front"
	"github.com/quorlease/quorlease/bench/grow"
	"github.com/quorlease/quorlease/bench/permit"
	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/sheet"
	"github.com/quorlease/quorlease/bench/stat"
)

// played is a part that came to something.
type played struct {
	Bounds []bound.Bound `json:"bounds"`
}

func (p *played) Section() sheet.Section {
	return sheet.Section{Section: "played", Title: "Played", Bounds: p.Bounds}
}

// part is one whose figure is as it must be, or not.
func part(name string, value float64, ran *[]string) Part {
	return Part{
		Name: name, Title: "it is " + name, Takes: func(*Config) time.Duration { return 90 * time.Second },
		Run: func(_ context.Context, c *Config) (Shown, error) {
			*ran = append(*ran, name+" in "+filepath.Base(c.Dir))
			c.say("a line")
			if err := os.WriteFile(filepath.Join(c.Dir, "file"), nil, 0o600); err != nil {
				return nil, err
			}
			got := stat.SpreadOf([]float64{value})
			return &played{[]bound.Bound{bound.Bound{Bound: name, Name: name, Least: new(1.0)}.Judge(&got, "", true)}}, nil
		},
	}
}

func config(t *testing.T) *Config {
	t.Helper()
	c := Default()
	c.Dir = t.TempDir()
	return &c
}

// TestRun: one part after the other, whatever became of the one before, and everything
// that is not as it must be is named.
func TestRun(t *testing.T) {
	t.Parallel()
	var ran []string
	failing := part("failing", 0, &ran)
	failing.Run = func(context.Context, *Config) (Shown, error) { return nil, errors.New("it does not start") }
	c := config(t)
	var progress strings.Builder
	c.Progress = &progress
	r, err := run(t.Context(), c, []Part{part("good", 1, &ran), failing, part("bad", 0.5, &ran)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"good in good", "bad in bad"}, ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"failing: it does not start", "bad: 0.5 is not ≥ 1"}, r.Missed); diff != "" || r.OK {
		t.Errorf("ok %v, missed (-want +got):\n%s", r.OK, diff)
	}
	if left, err := os.ReadDir(c.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	want := []string{
		"1 of 3: good, it is good; about 5 min left in all", "good: a line", "good took about 0 s: everything was kept",
		"2 of 3: failing, it is failing; about 3 min left in all",
		"failing took about 0 s: 1 things were not as they must be",
		"3 of 3: bad, it is bad; about 2 min left in all", "bad: a line",
		"bad took about 0 s: 1 things were not as they must be",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(progress.String()), "\n")); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	only := config(t)
	only.Only = []string{"good"}
	if r, err = run(t.Context(), &Config{Dir: only.Dir, Rounds: 1, Cycles: 1, Timeout: time.Second},
		only.chosen([]Part{part("good", 1, &ran), part("bad", 0, &ran)})); err != nil || !r.OK || len(r.Parts) != 1 {
		t.Errorf("only what is good: %v, %+v", err, r)
	}
}

// TestEnds: what can't run is an error before anything does, and whoever ends it gets no
// half of a result.
func TestEnds(t *testing.T) {
	t.Parallel()
	var ran []string
	errAbsent := errors.New("there is no redis-server")
	later := part("later", 1, &ran)
	later.Ready = func(*Config) error { return errAbsent }
	_, err := run(t.Context(), config(t), []Part{part("good", 1, &ran), later})
	if !errors.Is(err, errAbsent) || len(ran) > 0 {
		t.Errorf("%v, ran %q", err, ran)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := part("first", 1, &ran)
	first.Run = func(context.Context, *Config) (Shown, error) {
		cancel()
		return nil, ctx.Err()
	}
	if r, err := run(ctx, config(t), []Part{first, part("good", 1, &ran)}); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("%v, %+v", err, r)
	}
	if len(ran) > 0 {
		t.Errorf("ran %q", ran)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Config){
		`--only "disks" is none of compare, local, scale, gateway, faults, members`: func(c *Config) {
			c.Only = []string{"disks"}
		},
		"--rounds 0 is outside 1 to 100":           func(c *Config) { c.Rounds = 0 },
		"--cycles 0 is outside 1 to 1000":          func(c *Config) { c.Cycles = 0 },
		`--require "nginx" is none of ratelimit, `: func(c *Config) { c.Require = []string{"nginx"} },
	} {
		c := Default()
		change(&c)
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	quick := Default()
	quick.Quick()
	if diff := cmp.Diff([]string{"compare", "local", "scale", "gateway", "faults"}, quick.Only); diff != "" {
		t.Errorf("what is quick (-want +got):\n%s", diff)
	}
}

// results are those of parts that have none of their own in the reference's tests.
func results() *Result {
	g := grownOf(&Config{Cycles: 2}, &grow.Result{Steps: 12, Kills: 2, Leases: 9, LongestGap: 2100 * time.Millisecond})
	seen := &disturb.Seen{Asked: 10, Granted: 9, Escrow: 8}
	d := disturbed{&disturb.Result{
		Phases: []disturb.Phase{{Phase: "calm", Plenty: seen, Short: seen, Exact: seen}, {Phase: "cut", Why: "not root"}},
		Slacks: []disturb.Slack{{Limit: "plenty", SlackMS: 6000, SeenMS: 12}},
		Checks: []report.Check{{Guarantee: "G1", By: "a log", OK: true, Text: "kept"}},
	}}
	r := &Result{Version: "v1", Missed: []string{}}
	through := front.Timed{CPU: new(1.0)}
	fronted := &front.Result{
		Rounds: []front.Round{{"proxy": through, "gateway": through}}, Fill: &front.Fill{Used: []float64{0.95}},
		Storm: &front.Storm{Pairs: []front.Pair{{With: through}}, Heap: []front.Heap{{At: 5}}},
	}
	for _, one := range []Shown{g, d, &permit.Result{Rounds: []permit.Round{{Alone: 40}}}, fronted} {
		r.Parts = append(r.Parts, Measured{Part: "part", Result: one, section: one.Section()})
	}
	return r
}

func TestMembers(t *testing.T) {
	t.Parallel()
	s := results().Parts[0].section
	want := []string{"members come and go: longest time without a grant in a step: 2.1 s is not ≤ 2 s"}
	if diff := cmp.Diff(want, s.Missed()); diff != "" {
		t.Errorf("missed (-want +got):\n%s", diff)
	}
}

// TestReferenceHasEveryField: also those of parts that are no command of their own.
func TestReferenceHasEveryField(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "bench.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := results()
	for _, write := range []error{r.JSON(&out), r.Text(&bytes.Buffer{}), r.HTML(&bytes.Buffer{})} {
		if write != nil {
			t.Fatal(write)
		}
	}
	documented := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(string(text), -1) {
		for _, word := range regexp.MustCompile(`[A-Za-z0-9_-]+`).FindAllString(code, -1) {
			documented[word] = true
		}
	}
	for _, field := range regexp.MustCompile(`"([a-z0-9_]+)":`).FindAllStringSubmatch(out.String(), -1) {
		if !documented[field[1]] {
			t.Errorf("field %q is not in docs/reference/bench.md", field[1])
		}
	}
}
