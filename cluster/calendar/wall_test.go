package calendar_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/calendar"
	"github.com/quorlease/quorlease/fsm"
)

const year = 365 * 24 * time.Hour

// clocks are those of voters n1, n2, …, by how far they are from the right time.
func clocks(now int64, off ...time.Duration) []calendar.Reading {
	var list []calendar.Reading
	for i, by := range off {
		list = append(list, calendar.Reading{Node: fmt.Sprintf("n%d", i+1), Wall: now + int64(by)})
	}
	return list
}

// TestT6Median: one clock that is a year ahead decides nothing, and where too few
// were heard nobody does.
func TestT6Median(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-11-30T09:15:28Z").UnixNano()
	silent := calendar.Reading{Node: "n9", Wall: now, Age: calendar.HeardMax + 1}
	for _, test := range []struct {
		name     string
		readings []calendar.Reading
		voters   int
		want     time.Duration
		wantOK   bool
	}{
		{"T6_one_of_three_a_year_ahead", clocks(now, year, 0, time.Second), 3, time.Second, true},
		{"T6_one_of_three_a_year_behind", clocks(now, -year, 0, time.Second), 3, 0, true},
		{"T6_one_of_the_two_that_were_heard", append(clocks(now, year, 0), silent), 3, 0, true},
		{"T6_two_of_five", clocks(now, year, year, 0, 1, 2), 5, 2, true},
		{"T6_the_one_that_is_ahead_alone", append(clocks(now, year), silent, silent), 3, 0, false},
		{"alone", clocks(now, 0), 1, 0, true},
		{"half of four", clocks(now, 0, 0), 4, 0, false},
		{"nobody", nil, 0, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, ok := calendar.Median(test.readings, test.voters)
			if ok != test.wantOK || ok && got != now+int64(test.want) {
				t.Errorf("got %v after now, %v; want %v, %v", time.Duration(got-now), ok, test.want, test.wantOK)
			}
		})
	}
}

// leader is a machine with a keeper, in the time of a bubble.
type leader struct {
	mu      sync.Mutex
	machine *fsm.Machine
	index   uint64
	// off are how far the voters' clocks are from the bubble's.
	off    []time.Duration
	skews  []calendar.Skew
	keeper *calendar.Keeper
	leads  bool
}

func newLeader() *leader {
	l := &leader{machine: fsm.New(), off: make([]time.Duration, 3), leads: true}
	l.keeper = calendar.NewKeeper(calendar.Config{
		Leads: func() bool { return l.locked(func() bool { return l.leads }) },
		Clocks: func() ([]calendar.Reading, int) {
			l.mu.Lock()
			defer l.mu.Unlock()
			return clocks(time.Now().UnixNano(), l.off...), len(l.off)
		},
		View: func(read func(*fsm.Machine)) {
			l.mu.Lock()
			defer l.mu.Unlock()
			read(l.machine)
		},
		Do: func(_ context.Context, op *logv1.Operation) error { return l.apply(op) },
		Skewed: func(s calendar.Skew) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.skews = append(l.skews, s)
		},
	})
	return l
}

func (l *leader) locked(read func() bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return read()
}

func (l *leader) apply(op *logv1.Operation) error {
	wall := l.keeper.Wall()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index++
	entry := &logv1.Entry{Stamp: int64(l.index), Wall: wall, Operations: []*logv1.Operation{op}}
	results, _ := l.machine.Apply(l.index, entry)
	if r := results[0].GetRefusal(); r != nil {
		return &fsm.Refused{Refusal: r}
	}
	return nil
}

func (l *leader) setClock(node int, off time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off[node] = off
}

// window is the one that the quota has, as "from to".
func (l *leader) window() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.machine.WindowsOver(int64(^uint64(0) >> 1))
	if len(all) != 1 || all[0].Ends == 0 {
		return "none"
	}
	text := func(n int64) string { return time.Unix(0, n).UTC().Format(time.RFC3339) }
	return text(all[0].Starts) + " " + text(all[0].Ends)
}

func (l *leader) form(t *testing.T, zone string, period logv1.Calendar_Period) {
	t.Helper()
	limit := &logv1.Limit{
		Name: "month", Kind: logv1.Kind_KIND_QUOTA, Target: 10_000, Lease: int64(time.Second), MaxKeys: 1,
		Calendar:   &logv1.Calendar{Period: period, Timezone: zone},
		Dimensions: []*logv1.Dimension{{Name: "tokens", Interval: int64(time.Second), Burst: 5, MaxDebt: 5, MaxOpen: 5}},
	}
	for _, op := range []*logv1.Operation{
		{Kind: &logv1.Operation_Form{Form: &logv1.Form{ClusterId: strings.Repeat("0", 32)}}},
		{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{Limits: []*logv1.Limit{limit}}}},
	} {
		if err := l.apply(op); err != nil {
			t.Fatal(err)
		}
	}
}

// bubbleStart is when time begins in a bubble.
const bubbleStart = "2000-01-01T00:00:00Z"

func TestKeeperRollsWindows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLeader()
		l.form(t, "UTC", hour)
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { l.keeper.Run(ctx) })
		wait := func(d time.Duration) {
			timer := time.NewTimer(d)
			<-timer.C
			synctest.Wait()
		}
		for _, step := range []struct {
			wait time.Duration
			want string
		}{
			{calendar.Every, "2000-01-01T00:00:00Z 2000-01-01T01:00:00Z"},
			{time.Hour - 2*calendar.Every, "2000-01-01T00:00:00Z 2000-01-01T01:00:00Z"},
			{calendar.Every, "2000-01-01T01:00:00Z 2000-01-01T02:00:00Z"},
			// A leader that was away for hours leaves out those that nobody saw.
			{5 * time.Hour, "2000-01-01T06:00:00Z 2000-01-01T07:00:00Z"},
		} {
			wait(step.wait)
			if got := l.window(); got != step.want {
				t.Errorf("after %v: %s, want %s", time.Since(at(t, bubbleStart)), got, step.want)
			}
		}
		cancel()
		done.Wait()
	})
}

// TestT6OneClockAhead: a voter whose clock is a year ahead rolls nothing, is named
// once, and the window rolls when the others' time has come.
func TestT6OneClockAhead(t *testing.T) {
	t.Parallel()
	t.Run("T6", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l := newLeader()
			l.setClock(0, year)
			l.form(t, "Europe/Berlin", day)
			ctx, cancel := context.WithCancel(t.Context())
			var done sync.WaitGroup
			done.Go(func() { l.keeper.Run(ctx) })
			timer := time.NewTimer(time.Hour + time.Millisecond)
			<-timer.C
			synctest.Wait()
			if got := l.window(); got != "1999-12-31T23:00:00Z 2000-01-01T23:00:00Z" {
				t.Errorf("the window is %s", got)
			}
			l.setClock(0, 0)
			l.setClock(1, -time.Minute)
			timer.Reset(24 * time.Hour)
			<-timer.C
			synctest.Wait()
			if got := l.window(); got != "2000-01-01T23:00:00Z 2000-01-02T23:00:00Z" {
				t.Errorf("a day later the window is %s", got)
			}
			cancel()
			done.Wait()
			want := []calendar.Skew{{Node: "n1", By: year}, {Node: "n2", By: -time.Minute}}
			if len(l.skews) != 2 || l.skews[0] != want[0] || l.skews[1] != want[1] {
				t.Errorf("clocks that were named: %v, want %v", l.skews, want)
			}
		})
	})
}
