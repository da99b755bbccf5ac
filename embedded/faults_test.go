package embedded_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/alert"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/embedded"
)

// TestR16_one_process: a directory is one authority's at a time.
func TestR16_one_process(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := open(t, embedded.Config{Dir: dir, Limits: limitsOf(t, hourly)})
	other, err := embedded.Open(t.Context(), embedded.Config{Dir: dir})
	if err == nil {
		_ = other.Close()
	}
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v, want that %s is in use", err, dir)
	}
	if n := passed(t, ask(t, a), "api", 21); n != 20 {
		t.Errorf("%d were granted beside somebody who tried to open it too, want 20", n)
	}
}

// TestR17_damaged: what can't be trusted is not opened, and is told from what is busy.
func TestR17_damaged(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"identity.json", "raft.db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := embedded.Config{Dir: t.TempDir(), Limits: limitsOf(t, hourly)}
			if err := open(t, config).Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(config.Dir, name)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range data {
				data[i] ^= byte(i)
			}
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := embedded.Open(t.Context(), config)
			if err == nil {
				_ = a.Close()
			}
			if !errors.Is(err, cluster.ErrProtected) || !strings.Contains(err.Error(), config.Dir) {
				t.Errorf("got %v, want %v and the directory", err, cluster.ErrProtected)
			}
		})
	}
}

// TestR14_full_disk: what needs the log is refused where there is no room for it: at the start as an
// error, and later by the client's own rule, which says so.
func TestR14_full_disk(t *testing.T) {
	t.Parallel()
	config := embedded.Config{Dir: t.TempDir(), Limits: limitsOf(t, hourly), MinFreeBytes: 1 << 60}
	a, err := embedded.Open(t.Context(), config)
	if err == nil {
		_ = a.Close()
	}
	if !errors.Is(err, cluster.ErrDiskLow) || !strings.Contains(err.Error(), config.Dir) {
		t.Fatalf("got %v, want %v and the directory", err, cluster.ErrDiskLow)
	}
}

// TestStopped: where the node is gone a client decides by itself, and somebody is told.
func TestStopped(t *testing.T) {
	t.Parallel()
	a := open(t, embedded.Config{Dir: t.TempDir(), Limits: limitsOf(t, hourly)})
	told := make(chan alert.Alert, 16)
	c, err := a.Client(client.Config{
		Client: "notes", Alerts: []alert.Sink{alert.Func(func(one alert.Alert) { told <- one })},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if n := passed(t, c, "api", 1); n != 1 {
		t.Error("nothing was granted")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for ctx := t.Context(); !c.FailOpen(); {
		if d, err := c.Acquire(ctx, of("api", 1)); err != nil || d.Source != client.Local {
			t.Fatalf("%+v, %v: want the client's own decision", d, err)
		}
	}
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		t.Error("nobody was told that the client decides by itself")
	}
}

// TestG10_close_under_load: callers that are under way have an answer, and nothing goes on.
func TestG10_close_under_load(t *testing.T) {
	t.Parallel()
	config := embedded.Config{Dir: t.TempDir(), Limits: limitsOf(t,
		"limits:\n- {name: api, rate: {requests: 1000000/s}}\n"+
			"- {name: exact, rate: {requests: 1000000/s}, exact: true}\n")}
	a, err := embedded.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	c := ask(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asking sync.WaitGroup
	warm := make(chan struct{}, 16)
	for i := range 16 {
		limit := []string{"api", "exact"}[i%2]
		asking.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := c.Acquire(ctx, of(limit, 1)); err != nil && ctx.Err() == nil && !errors.Is(err, client.ErrClosed) {
					t.Errorf("%s: %v", limit, err)
					return
				}
				if n == 50 {
					warm <- struct{}{}
				}
			}
		})
	}
	for range 16 {
		<-warm
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	asking.Wait()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestWallClockBack: a wall clock that is set back gives no quota a second time.
func TestWallClockBack(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	config := embedded.Config{Dir: t.TempDir(), Wall: func() time.Time { return day }, Limits: limitsOf(t,
		"limits: [{name: api, quota: {per: day, timezone: UTC, amounts: {requests: 3}}}]\n")}
	for _, wall := range []time.Time{day, day.AddDate(0, 0, -1), day.AddDate(0, -1, 0), day.Add(time.Hour)} {
		config.Wall = func() time.Time { return wall }
		a, err := embedded.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		c := ask(t, a)
		want := 0
		if wall.Equal(day) {
			want = 3
		}
		if n := passed(t, c, "api", 4); n != want {
			t.Errorf("at %s %d were granted, want %d", wall, n, want)
		}
		if err := errors.Join(c.Close(), a.Close()); err != nil {
			t.Error(err)
		}
	}
}
