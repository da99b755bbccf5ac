package compare

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench/compare/page"
	"github.com/quorlease/quorlease/bench/compare/peer"
	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/bench/report"
)

func TestMain(m *testing.M) {
	// Processes are started by one goroutine that stays for good.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/quorlease/quorlease/bench.doPinned"))
}

// fake is a system in memory that takes took for an answer. What it does is noted.
type fake struct {
	took    time.Duration
	forgets bool
	escrow  bool
	broken  error

	gone bool

	mu     sync.Mutex
	levels map[string]float64
	at     map[string]time.Time
	used   time.Duration
	notes  []string
}

var _ peer.Keeper = (*fake)(nil)

func (f *fake) note(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, text)
}

func (f *fake) start(context.Context, peer.Config) (peer.System, error) {
	f.levels, f.at = map[string]float64{}, map[string]time.Time{}
	f.note("start")
	return f, nil
}

func (f *fake) Open(_ context.Context, way peer.Way, b peer.Bucket) (peer.Door, error) {
	f.note("open " + string(way) + " " + b.Name)
	return &fakeDoor{fake: f, bucket: b}, nil
}

func (f *fake) CPU() (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return 0, errGone
	}
	return f.used, nil
}

func (f *fake) Crash(context.Context) error {
	f.note("crash")
	if f.forgets {
		clear(f.levels)
		clear(f.at)
	}
	return f.broken
}

func (f *fake) Close() error {
	f.note("close")
	return nil
}

// watched is one whose whole history is looked at.
type watched struct {
	*fake
	broken bool
	seen   atomic.Int64
}

var _ audited = (*watched)(nil)

func (w *watched) Note(peer.Way, peer.Bucket) func(int, time.Time, time.Time) {
	return func(int, time.Time, time.Time) { w.seen.Add(1) }
}

func (w *watched) Check(context.Context) ([]report.Check, error) {
	w.note("check")
	return []report.Check{{Guarantee: "G1", By: "a log", OK: !w.broken, Text: "something"}}, nil
}

// errGone: there is no such process any more.
var errGone = errors.New("gone")

// take is a token bucket.
func (f *fake) take(b *peer.Bucket, key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used += 3 * time.Microsecond
	now := time.Now()
	level := float64(b.Burst)
	if at, known := f.at[key]; known {
		level = min(level, f.levels[key]+now.Sub(at).Seconds()*float64(b.PerSecond))
	}
	granted := level >= 1
	if granted {
		level--
	}
	f.levels[key], f.at[key] = level, now
	return granted
}

type fakeDoor struct {
	fake   *fake
	bucket peer.Bucket
}

func (d *fakeDoor) Asker(int) (load.Asker, error) { return d, nil }

func (d *fakeDoor) Close() error {
	d.fake.note("shut " + d.bucket.Name)
	return nil
}

func (d *fakeDoor) Ask(ctx context.Context, key int) (load.Answer, error) {
	if err := pause(ctx, d.fake.took); err != nil {
		return load.Answer{}, err
	}
	granted := d.fake.take(&d.bucket, d.bucket.Key(key))
	return load.Answer{Granted: granted, Escrow: granted && d.fake.escrow}, nil
}

// absent is a program that nobody has.
var absent = peer.Program{Name: "absent", Files: []string{"quorlease-no-such-program"}, How: "write it"}

func hurried(t *testing.T) *Config {
	t.Helper()
	c := Default()
	c.Dir, c.Callers, c.Keys, c.PacedRate = t.TempDir(), 8, 4, 100
	c.Rounds, c.Warmup, c.Length = 3, 100*time.Millisecond, time.Second
	return &c
}

func TestCompare(t *testing.T) {
	t.Parallel()
	ours := &fake{took: 2 * time.Millisecond, escrow: true}
	theirs := &fake{took: 4 * time.Millisecond, forgets: true}
	all := []entrant{
		{
			name: "quorlease", start: ours.start,
			sides: []side{
				{"escrow-unary", "ours", page.Unary, "unary"}, {"escrow-paced", "ours, paced", page.Paced, "session"},
			},
			trials: []trial{{page.EscrowTrial, "ours", "3", "yes", "unary"}},
		},
		{
			name: "ratelimit", start: theirs.start,
			sides:  []side{{"ratelimit", "theirs", page.Unary, "unary"}},
			trials: []trial{{"ratelimit", "theirs", "1", "no", "unary"}},
		},
		{name: "etcd", needs: []peer.Program{absent}},
	}
	var progress strings.Builder
	var r *page.Result
	synctest.Test(t, func(t *testing.T) {
		c := hurried(t)
		c.Progress = &progress
		var err error
		if r, err = compare(t.Context(), c, all); err != nil {
			t.Fatal(err)
		}
	})
	want := []string{
		"start", "open unary load", "open session load",
		"open unary trial", "shut trial", "crash", "open unary trial", "shut trial", "shut load", "shut load", "close",
	}
	if diff := cmp.Diff(want, ours.notes); diff != "" {
		t.Errorf("what was done to ours (-want +got):\n%s", diff)
	}
	missing := []page.Missing{{System: "etcd", Why: "there is no absent", How: "write it"}}
	if diff := cmp.Diff(missing, r.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	checkSides(t, r)
	if got := r.Trials[0]; got.Over != 0 || got.Before < 4*trialBurst || got.Failed != "" || got.Escrow == 0 {
		t.Errorf("ours, killed: %+v; it forgets nothing", got)
	}
	// It gave each bucket's burst twice, less what would have come back meanwhile.
	if got := r.Trials[1]; got.Over < 4*trialBurst-4*trialRate || got.Over > 4*trialBurst || got.Escrow != 0 {
		t.Errorf("theirs, killed: %+v; want about %d over", got, 4*trialBurst)
	}
	// Like beside like; backwards in the second round.
	var turns []string
	for line := range strings.Lines(progress.String()) {
		if _, rest, found := strings.Cut(line, ": "); found && strings.HasPrefix(line, "round ") {
			turns = append(turns, strings.Fields(rest)[0])
		}
	}
	forth := []string{"escrow-unary", "ratelimit", "escrow-paced"}
	back := slices.Clone(forth)
	slices.Reverse(back)
	if diff := cmp.Diff(slices.Concat(forth, back, forth), turns); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

// checkSides looks at what fakes that take 2 and 4 ms for an answer came to.
func checkSides(t *testing.T, r *page.Result) {
	t.Helper()
	for i, want := range []float64{8 / 0.002, 100, 8 / 0.004} {
		s := &r.Sides[i].Summary
		if got := s.DecisionsPerSecond.Median; got < want*0.8 || got > want*1.01 || s.Failed != 0 {
			t.Errorf("%s: %.0f/s, %d failed; want %.0f/s", r.Sides[i].Side, got, s.Failed, want)
		}
		if len(r.Sides[i].Rounds) != 3 || s.CPU == nil || s.CPU.Median < 2.9 || s.CPU.Median > 3.1 {
			t.Errorf("%s: %d rounds, processor time %v; want 3 of 3 us", r.Sides[i].Side, len(r.Sides[i].Rounds), s.CPU)
		}
	}
	for _, b := range r.Bounds {
		switch b.Bound {
		case "escrow-unary-ratelimit":
			if b.Got == nil || b.Got.Median < 1.95 || b.Got.Median > 2.05 {
				t.Errorf("ours over theirs %v, want 2", b.Got)
			}
		case "escrow-unary-held":
			if b.Got == nil || b.Got.Median != 1 || !b.OK {
				t.Errorf("from escrow %v", b.Got)
			}
		case "consensus-session-take":
			if b.Got != nil || !b.OK {
				t.Errorf("beside what is not there %+v", b)
			}
		}
	}
}

// TestWholeHistory: every grant that callers see of a system whose history can be looked at
// is noted, those around a kill too, and a guarantee that broke is the run's (G1).
func TestWholeHistory(t *testing.T) {
	t.Parallel()
	for _, broken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ours := &watched{fake: &fake{took: 2 * time.Millisecond, escrow: true}, broken: broken}
			r, err := compare(t.Context(), hurried(t), []entrant{{
				name: "quorlease",
				start: func(ctx context.Context, c peer.Config) (peer.System, error) {
					_, err := ours.start(ctx, c)
					return ours, err
				},
				sides:  []side{{"escrow-unary", "ours", page.Unary, "unary"}},
				trials: []trial{{page.EscrowTrial, "ours", "3", "yes", "unary"}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			least := r.Sides[0].Summary.Granted + r.Trials[0].Before + r.Trials[0].After
			if seen := ours.seen.Load(); seen < least {
				t.Errorf("%d grants were noted, at least %d were seen", seen, least)
			}
			if !slices.Contains(ours.notes, "check") || len(r.Checks) != 1 || r.OK == broken {
				t.Errorf("%q, %+v, ok %v", ours.notes, r.Checks, r.OK)
			}
		})
	}
}

// TestOneThatIsGone: a process of others that ends in the middle takes its own figures
// with it and nobody else's.
func TestOneThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		theirs := &fake{took: 2 * time.Millisecond, gone: true}
		r, err := compare(t.Context(), hurried(t), []entrant{{
			name: "redis-memory", start: theirs.start, sides: []side{{"redis", "theirs", page.Unary, "unary"}},
		}})
		if err != nil || r.Sides[0].Summary.CPU != nil || r.Sides[0].Summary.Granted == 0 {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

func TestCompareEnds(t *testing.T) {
	t.Parallel()
	errBroken := errors.New("it does not come back")
	synctest.Test(t, func(t *testing.T) {
		// One of others that does not come back is a trial without a figure.
		theirs := &fake{took: time.Millisecond, broken: errBroken}
		one := entrant{
			name: "redis-memory", start: theirs.start,
			sides: []side{{"redis", "theirs", page.Unary, "unary"}}, trials: []trial{{slug: "redis", way: "unary"}},
		}
		r, err := compare(t.Context(), hurried(t), []entrant{one})
		if err != nil || len(r.Trials) != 1 || r.Trials[0].Failed != "start again: it does not come back" {
			t.Errorf("%v, %+v", err, r)
		}
		// One that does not start is missing, unless it is asked for, or ours.
		one.needs = []peer.Program{{Name: "sh", Files: []string{"sh"}, How: "install it"}}
		one.start = func(context.Context, peer.Config) (peer.System, error) { return nil, errBroken }
		r, err = compare(t.Context(), hurried(t), []entrant{one})
		if err != nil || len(r.Missing) != 1 || !strings.Contains(r.Missing[0].Why, errBroken.Error()) {
			t.Errorf("%v, %+v", err, r)
		}
		asked := hurried(t)
		asked.Require = []string{"redis-memory"}
		if _, err = compare(t.Context(), asked, []entrant{one}); !errors.Is(err, errBroken) {
			t.Errorf("required: %v", err)
		}
		one.needs = []peer.Program{absent}
		_, err = compare(t.Context(), asked, []entrant{one})
		if err == nil || !strings.Contains(err.Error(), "get it by: write it") {
			t.Errorf("required and not there: %v", err)
		}
		one.needs = nil
		if _, err = compare(t.Context(), hurried(t), []entrant{one}); !errors.Is(err, errBroken) {
			t.Errorf("ours: %v", err)
		}
		left := hurried(t)
		left.Without = []string{"redis-memory"}
		if r, err = compare(t.Context(), left, []entrant{one}); err != nil || r.Missing[0].Why != "left out" {
			t.Errorf("left out: %v, %+v", err, r)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		// Whoever is told to stop has ended everything.
		ours := &fake{took: time.Millisecond}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err := compare(ctx, hurried(t), []entrant{{
			name: "quorlease", start: ours.start, sides: []side{{"escrow-unary", "ours", page.Unary, "unary"}},
		}})
		if !errors.Is(err, context.DeadlineExceeded) || ours.notes[len(ours.notes)-1] != "close" {
			t.Errorf("%v, %q", err, ours.notes)
		}
	})
}
