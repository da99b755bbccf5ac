package front

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/bench/bound"
	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/sheet"
	"github.com/quorlease/quorlease/bench/upstream"
)

// update rewrites the golden file instead of comparing with it.
var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) {
	// Processes are started by one goroutine that stays for good.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

// TestRun: a run in a hurry, of real processes, has every figure, holds none to its bound
// and leaves nothing running.
func TestRun(t *testing.T) {
	c := Default()
	c.Quick()
	c.Callers, c.Paced = 8, 100
	c.Dir = t.TempDir()
	var err error
	if c.Binary, err = bench.BuildBinary(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	// A file may be written to by many.
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var progress bytes.Buffer
	c.Progress, c.Log = &progress, log
	r, err := Run(t.Context(), c)
	if err != nil {
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("%v; the processes said:\n%s", err, said)
	}
	for _, side := range sides {
		if got := r.Rounds[0][side]; got.Answers == 0 || got.Granted != got.Answers || got.P50 <= 0 || got.P99 < got.P50 {
			t.Errorf("%s: %+v", side, got)
		}
	}
	if p := r.Storm.Pairs[0]; p.Refusals.Answers == 0 || p.Refusals.Granted > budget || len(r.Storm.Heap) == 0 {
		t.Errorf("a storm: %+v, %d looks at the memory", p, len(r.Storm.Heap))
	}
	if r.Fill.Calls == 0 || r.Fill.Tokens == 0 || r.Fill.Estimated <= r.Fill.Tokens {
		t.Errorf("a limit that is used up: %+v, want prompts that are less than they are estimated at", r.Fill)
	}
	for i := range r.Bounds {
		if b := &r.Bounds[i]; b.Verdict() != "" || b.Got == nil && b.Bound != "storm-heap" {
			t.Errorf("%+v", b)
		}
	}
	if !strings.Contains(progress.String(), "round 1 of 1: p50 and p99: proxy ") {
		t.Errorf("progress %q", progress.String())
	}
}

// TestCanceled: whoever ends a run gets no half of one.
func TestCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := Default()
	c.Binary, c.Dir = os.Args[0], t.TempDir()
	if r, err := Run(ctx, c); err == nil || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good, quick := Default(), Default()
	quick.Quick()
	for name, c := range map[string]Config{"default": good, "quick": quick} {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, change := range map[string]func(*Config){
		"rounds 0 is outside 1 to 100":          func(c *Config) { c.Rounds = 0 },
		"callers 1001 is outside 1 to 1000":     func(c *Config) { c.Callers = 1001 },
		"paced 0 is outside 1 to 100000":        func(c *Config) { c.Paced = 0 },
		"storm -1 is outside 1 to 100000":       func(c *Config) { c.Storm = -1 },
		"others 1e+06 is outside 1 to 100000":   func(c *Config) { c.Others = 1e6 },
		"warmup -1s is outside 0s to 1m0s":      func(c *Config) { c.Warmup = -time.Second },
		"length 10ms is outside 100ms to 1m0s":  func(c *Config) { c.Length = 10 * time.Millisecond },
		"steady 0s is outside 1s to 24h0m0s":    func(c *Config) { c.Steady = 0 },
		"fill 2h0m0s is outside 1s to 1h0m0s":   func(c *Config) { c.Fill = 2 * time.Hour },
		"timeout 1m1s is outside 1ms to 1m0s":   func(c *Config) { c.Timeout = 61 * time.Second },
		"rounds 101 is outside 1 to 100":        func(c *Config) { c.Rounds = 101 },
		"storm 0 is outside 1 to 100000":        func(c *Config) { c.Storm = 0 },
		"callers 0 is outside 1 to 1000":        func(c *Config) { c.Callers = 0 },
		"length 1m1s is outside 100ms to 1m0s":  func(c *Config) { c.Length = 61 * time.Second },
		"timeout 999µs is outside 1ms to 1m0s":  func(c *Config) { c.Timeout = 999 * time.Microsecond },
		"steady 25h0m0s is outside 1s to 24h0m": func(c *Config) { c.Steady = 25 * time.Hour },
	} {
		c := Default()
		change(&c)
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// sample is a run of two rounds in which every bound is kept.
func sample() *Result {
	timed := func(perSecond, p50, p99, cpu float64) Timed {
		return Timed{PerSecond: perSecond, P50: p50, P99: p99, CPU: &cpu, Answers: 2000, Granted: 2000}
	}
	commits := func(p50, p99 float64) Timed {
		return Timed{PerSecond: 500, P50: p50, P99: p99, Answers: 2000, Granted: 2000}
	}
	pair := func(refusal, with, without float64) Pair {
		return Pair{
			Refusals: Timed{PerSecond: 200, P50: refusal / 2, P99: refusal, Answers: 800},
			With:     timed(200, with/3, with, 0), Without: timed(200, without/3, without, 0),
		}
	}
	r := &Result{
		Rounds: []Round{
			{
				proxied: timed(500, 0.3, 1.2, 150), fronted: timed(500, 0.4, 1.6, 200), slotted: timed(500, 1.4, 4, 260),
				committed: commits(1.27, 3.5), busyProxied: timed(9000, 7, 14, 90), busyFronted: timed(8000, 8, 15, 110),
			},
			{
				proxied: timed(499, 0.32, 1.3, 150), fronted: timed(501, 0.41, 1.5, 200), slotted: timed(500, 1.5, 4.1, 260),
				committed: commits(1.37, 3.6), busyProxied: timed(9100, 7, 14, 90), busyFronted: timed(8100, 8, 15, 112),
			},
		},
		Storm: &Storm{
			Pairs:    []Pair{pair(0.6, 1.6, 1.5), pair(0.7, 1.5, 1.6)},
			Refusals: Timed{PerSecond: 200, P50: 0.2, P99: 0.6, Answers: 120_000, Granted: 40}, Others: timed(200, 0.5, 1.6, 0),
		},
		Fill: &Fill{
			Used: []float64{0.95, 0.96, 0.97, 0.95, 0.96}, Calls: 2400, Throttled: 1, Tokens: 4_800_000,
			Estimated: 6_600_000, Target: sizedTarget,
		},
	}
	for i := range 120 {
		r.Storm.Heap = append(r.Storm.Heap, Heap{At: 5 * float64(i+1), Collected: 24 + float64(i%2), Resident: 60})
	}
	r.judge()
	return r
}

// TestSection: what people read. A change of it is reviewed as code.
func TestSection(t *testing.T) {
	t.Parallel()
	s := sheet.Sheet{
		Title: "quorlease bench all", Version: "v1.2.3", Sections: []sheet.Section{sample().Section()},
		Place: sheet.Place{Date: "2026-12-01", Machine: "A processor", Processors: 2, Platform: "linux/amd64"},
	}
	var out bytes.Buffer
	if err := s.Text(&out); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "sample.txt")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("(-want +got; -update rewrites it):\n%s", diff)
	}
	if missed := s.Missed(); len(missed) > 0 {
		t.Errorf("missed %q", missed)
	}
}

// TestJudge: each bound is missed by what it is about, and by nothing else.
func TestJudge(t *testing.T) {
	t.Parallel()
	rounds := func(side string, change func(*Timed)) func(*Result) {
		return func(r *Result) {
			for i := range r.Rounds {
				one := r.Rounds[i][side]
				change(&one)
				r.Rounds[i][side] = one
			}
		}
	}
	for slug, change := range map[string]func(*Result){
		"gateway-p50":       rounds(fronted, func(t *Timed) { t.P50 += 0.1 }),
		"gateway-p99":       rounds(fronted, func(t *Timed) { t.P99++ }),
		"gateway-slots-p50": rounds(slotted, func(t *Timed) { t.P50 += 0.1 }),
		"gateway-slots-p99": rounds(slotted, func(t *Timed) { t.P99++ }),
		"storm-refusals-p99": func(r *Result) {
			for i := range r.Storm.Pairs {
				r.Storm.Pairs[i].Refusals.P99 = 1.1
			}
		},
		"storm-others-p99": func(r *Result) {
			for i := range r.Storm.Pairs {
				r.Storm.Pairs[i].With.P99 = 1.3 * r.Storm.Pairs[i].Without.P99
			}
		},
		"storm-heap": func(r *Result) {
			for i := range r.Storm.Heap {
				r.Storm.Heap[i].Collected += float64(i) / 30
			}
		},
		"fill-used":      func(r *Result) { r.Fill.Used = []float64{0.95, 0.89, 0.88, 0.97, 0.7} },
		"fill-throttled": func(r *Result) { r.Fill.Throttled = 3 },
	} {
		r := sample()
		change(r)
		r.judge()
		var missed []string
		for i := range r.Bounds {
			if b := &r.Bounds[i]; b.Verdict() == bound.Missed {
				missed = append(missed, b.Bound)
			}
		}
		if !slices.Equal(missed, []string{slug}) {
			t.Errorf("%s: missed %q", slug, missed)
		}
	}
}

// TestMemoryThatWasNotSeen: without a look in some part of the time there is no figure, and
// what grew before the first fifth of it was not yet held.
func TestMemoryThatWasNotSeen(t *testing.T) {
	t.Parallel()
	// One look at first, one at the beginning of each part, and the last one.
	parts := func(mb ...float64) (heap []Heap) {
		for i, each := range mb {
			at := 1.0
			if i > 0 {
				at = 10 + 10*float64(i)
			}
			heap = append(heap, Heap{At: at, Collected: each})
		}
		return heap
	}
	for name, test := range map[string]struct {
		heap []Heap
		want float64
		ok   bool
	}{
		"none":       {nil, 0, false},
		"a_few":      {parts(1, 5, 5), 0, false},
		"grew_first": {parts(1, 5, 5, 5, 5, 5, 5, 5, 5, 5), 0, true},
		"shrank":     {parts(1, 5, 5, 5, 5, 5, 4, 5, 5, 5), 0.2, true},
	} {
		got, ok := (&Storm{Heap: test.heap}).change()
		if ok != test.ok || got < test.want-1e-9 || got > test.want+1e-9 {
			t.Errorf("%s: %g, %v; want %g, %v", name, got, ok, test.want, test.ok)
		}
	}
	var h Heap
	if err := h.read(strings.NewReader("go_memstats_next_gc_bytes 8e+06\n")); err == nil {
		t.Errorf("%+v of half of the figures", h)
	}
	if err := h.read(strings.NewReader("process_resident_memory_bytes x\n")); err == nil ||
		!strings.Contains(err.Error(), "process_resident_memory_bytes x") {
		t.Errorf("%v, want the line that is none", err)
	}
}

// TestCount: what came before or after the time is left out, and a refusal uses nothing.
func TestCount(t *testing.T) {
	t.Parallel()
	call := func(at time.Duration, o upstream.Outcome) upstream.Call {
		return upstream.Call{
			Arrived: at, Outcome: o, Billed: provider.Call{Input: sizedRate}, Estimated: provider.Call{Input: 2 * sizedRate},
		}
	}
	f := &Fill{}
	f.count([]upstream.Call{
		call(9*time.Second, upstream.Served), call(10*time.Second, upstream.Served), call(11*time.Second, upstream.Refused),
		call(14*time.Second, upstream.Served), call(15*time.Second, upstream.Served),
	}, 10*time.Second, 5*time.Second)
	want := &Fill{Used: []float64{1, 0, 0, 0, 1}, Calls: 3, Throttled: 1, Tokens: 2 * sizedRate, Estimated: 4 * sizedRate}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTimeout: nobody is waited for longer than a call may take.
func TestTimeout(t *testing.T) {
	t.Parallel()
	silent := make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	defer behind.Close()
	defer close(silent)
	d := &door{
		address: behind.Listener.Addr().String(), path: "/", client: "c", body: chat(plain), timeout: 10 * time.Millisecond,
	}
	defer d.close()
	caller, err := d.Asker(0)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := caller.Ask(t.Context(), 0); err == nil || reason(err) != "UNANSWERED" {
		t.Errorf("%+v, %v", answer, err)
	}
}

// TestBare: the proxy passes on what it is asked, and ends when it is told to.
func TestBare(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_ = json.NewEncoder(w).Encode([]string{r.Method, r.URL.Path, r.Header.Get("Authorization"), string(body)})
	}))
	defer behind.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listen := func() net.Listener {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := listen()
	ended := make(chan error, 1)
	go func() { ended <- Bare(ctx, l, behind.URL) }()
	d := &door{
		address: l.Addr().String(), path: "/v1/chat/completions", header: openAI, client: "c",
		body: func(to []byte) []byte { return append(to, "hello"...) },
	}
	defer d.close()
	caller, err := d.Asker(0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if answer, err := caller.Ask(ctx, 0); err != nil || !answer.Granted {
			t.Errorf("%+v, %v", answer, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := caller.Ask(t.Context(), 0); err == nil {
		t.Error("it answers after its end")
	}
	if err := Bare(t.Context(), listen(), "nowhere"); err == nil || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("%v, want the address that is none", err)
	}
}
