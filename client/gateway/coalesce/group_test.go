package coalesce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/client/gateway/canon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBusy = errors.New("busy")

func group(t testing.TB, c Config) *Group[int] {
	t.Helper()
	g, err := New[int](c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func key(n int) Key {
	return Key{Tenant: "t", Route: "POST /v1/chat", Model: "m", Body: canon.Sum{byte(n), byte(n >> 8)}}
}

// after returns work that writes an answer after a time.
func after(d time.Duration, answer string) Work[int] {
	return func(ctx context.Context, w *Writer[int]) error {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		w.Begin(200)
		_, err := io.WriteString(w, answer)
		return err
	}
}

// read reads an answer to its end.
func read(t testing.TB, r *Reader[int]) (int, string, error) {
	meta, err := r.Meta(t.Context())
	if err != nil {
		return 0, "", err
	}
	var all bytes.Buffer
	for {
		piece, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return meta, all.String(), nil
		}
		if err != nil {
			return meta, all.String(), err
		}
		all.Write(piece)
	}
}

func join(t testing.TB, g *Group[int], k Key, work Work[int]) *Reader[int] {
	t.Helper()
	r, ok := g.Join(t.Context(), k, work)
	if !ok {
		t.Fatalf("%v does not fit: %+v", k, g.Stats())
	}
	t.Cleanup(r.Close)
	return r
}

func TestEqual(t *testing.T) {
	t.Run("S2-11_ten_at_once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := group(t, Config{})
			var charged atomic.Int64
			work := func(ctx context.Context, w *Writer[int]) error {
				charged.Add(1)
				return after(time.Second, "answer")(ctx, w)
			}
			var clients sync.WaitGroup
			var leaders atomic.Int64
			for range 10 {
				clients.Go(func() {
					r := join(t, g, key(1), work)
					defer r.Close()
					if meta, answer, err := read(t, r); meta != 200 || answer != "answer" || err != nil {
						t.Errorf("%d %q, %v", meta, answer, err)
					}
					if r.Leads() {
						leaders.Add(1)
					}
				})
			}
			clients.Wait()
			synctest.Wait()
			s := g.Stats()
			if charged.Load() != 1 || leaders.Load() != 1 || s.Executed != 1 || s.Coalesced != 9 || s.Duplicates != 0 {
				t.Errorf("charged %d, %d leaders, %+v; want one of ten", charged.Load(), leaders.Load(), s)
			}
			if s.Calls != 0 || s.Readers != 0 || s.Bytes != 0 {
				t.Errorf("something is left: %+v", s)
			}
		})
	})
	t.Run("S2-12_an_event_that_comes_twice", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := group(t, Config{})
			var clients sync.WaitGroup
			for n := range 2400 {
				clients.Go(func() {
					<-time.After(time.Duration(n) * time.Millisecond / 4)
					r := join(t, g, key(n%2000), after(2*time.Second, "done"))
					defer r.Close()
					if _, answer, err := read(t, r); answer != "done" || err != nil {
						t.Errorf("job %d: %q, %v", n, answer, err)
					}
				})
			}
			clients.Wait()
			if s := g.Stats(); s.Executed != 2000 || s.Coalesced != 400 || s.Duplicates != 0 {
				t.Errorf("%+v, want 400 of 2,400 coalesced and no duplicate", s)
			}
		})
	})
}

// TestApart: what differs in anything is other work, most of all the tenant.
func TestApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{})
		keys := []Key{key(1), key(2)}
		for _, change := range []func(*Key){
			func(k *Key) { k.Tenant = "u" }, func(k *Key) { k.Route = "GET" }, func(k *Key) { k.Model = "n" },
			func(k *Key) { k.Stream = true },
		} {
			k := key(1)
			change(&k)
			keys = append(keys, k)
		}
		for i, k := range keys {
			join(t, g, k, after(time.Second, fmt.Sprint(i)))
		}
		var followers []*Reader[int]
		for _, k := range keys {
			followers = append(followers, join(t, g, k, after(time.Second, "another")))
		}
		for i, r := range followers {
			if _, answer, err := read(t, r); answer != fmt.Sprint(i) || err != nil || r.Leads() {
				t.Errorf("%+v: %q, %v; want %d", keys[i], answer, err, i)
			}
		}
		if _, ok := g.Join(t.Context(), Key{Route: "r"}, after(0, "")); ok {
			t.Error("a request of nobody is coalesced")
		}
	})
}

func TestWhoGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		first, ok := g.Join(ctx, key(1), after(time.Second, "answer"))
		if !ok {
			t.Fatal("does not fit")
		}
		second := join(t, g, key(1), after(time.Second, "another"))
		cancel()
		if _, err := first.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("whoever went away: %v", err)
		}
		first.Close()
		if _, answer, err := read(t, second); answer != "answer" || err != nil || second.Leads() {
			t.Errorf("whoever stayed: %q, %v", answer, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{})
		began := time.Now()
		var ended atomic.Pointer[error]
		a := join(t, g, key(1), func(ctx context.Context, _ *Writer[int]) error {
			<-ctx.Done()
			err := context.Cause(ctx)
			ended.Store(&err)
			return err
		})
		b := join(t, g, key(1), after(time.Second, ""))
		a.Close()
		synctest.Wait()
		if ended.Load() != nil {
			t.Error("the work ended although somebody waits")
		}
		b.Close()
		b.Close()
		synctest.Wait()
		if err := ended.Load(); err == nil || !errors.Is(*err, ErrNobody) || time.Since(began) != 0 {
			t.Errorf("nobody waits: %v after %v", err, time.Since(began))
		}
		if _, err := b.Next(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		if c := join(t, g, key(1), after(time.Second, "new")); !c.Leads() {
			t.Error("work that nobody waited for was joined")
		}
	})
}

// TestLingering: work that nobody waits for is not joined, even while it lasts.
func TestLingering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{})
		r := join(t, g, key(1), func(ctx context.Context, w *Writer[int]) error {
			<-ctx.Done()
			<-time.After(time.Minute)
			_, err := io.WriteString(w, "late")
			return err
		})
		r.Close()
		next := join(t, g, key(1), after(time.Second, "new"))
		if _, answer, err := read(t, next); answer != "new" || err != nil {
			t.Errorf("%q, %v", answer, err)
		}
		if s := g.Stats(); s.Calls != 2 || s.Duplicates != 0 {
			t.Errorf("%+v, want both calls", s)
		}
	})
}

func TestPromotion(t *testing.T) {
	busy := func(context.Context, *Writer[int]) error {
		<-time.After(time.Second)
		return fmt.Errorf("upstream: %w", errBusy)
	}
	config := Config{Transient: func(err error) bool { return errors.Is(err, errBusy) }}
	for _, test := range []struct {
		name                 string
		config               Config
		first, second        Work[int]
		want                 [3]string
		executed, promoted   uint64
		leads                [3]bool
		firstClosesMeanwhile bool
	}{
		{
			"another_leads", config, busy, after(0, "second"),
			[3]string{"busy", "second", "second"},
			2, 1,
			[3]bool{true, true, false},
			false,
		},
		{
			"whoever_led_is_gone", config, busy, after(0, "second"),
			[3]string{"closed", "second", "second"},
			2, 1,
			[3]bool{true, true, false},
			true,
		},
		{"only_once", config, busy, busy, [3]string{"busy", "busy", "busy"}, 2, 1, [3]bool{true, true, false}, false},
		{
			"not_after_what_lasts",
			Config{},
			busy, after(0, "second"),
			[3]string{"busy", "busy", "busy"},
			1, 0,
			[3]bool{true, false, false},
			false,
		},
		{
			"not_where_nobody_may",
			Config{Promotions: -1, Transient: config.Transient},
			busy, after(0, "second"),
			[3]string{"busy", "busy", "busy"},
			1, 0,
			[3]bool{true, false, false},
			false,
		},
		{"not_after_the_answer_began", config, func(ctx context.Context, w *Writer[int]) error {
			w.Begin(200)
			return busy(ctx, w)
		}, after(0, "second"), [3]string{"busy", "busy", "busy"}, 1, 0, [3]bool{true, false, false}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := group(t, test.config)
				readers := []*Reader[int]{
					join(t, g, key(1), test.first), join(t, g, key(1), test.second), join(t, g, key(1), after(0, "third")),
				}
				if test.firstClosesMeanwhile {
					readers[0].Close()
				}
				for i, r := range readers {
					_, answer, err := read(t, r)
					if got := answer + errorOf(err); got != test.want[i] || r.Leads() != test.leads[i] {
						t.Errorf("reader %d: %q, leads %v; want %q, %v", i, got, r.Leads(), test.want[i], test.leads[i])
					}
				}
				if s := g.Stats(); s.Executed != test.executed || s.Promoted != test.promoted {
					t.Errorf("%+v, want %d executed, %d promoted", s, test.executed, test.promoted)
				}
			})
		})
	}
}

func errorOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errBusy):
		return "busy"
	case errors.Is(err, ErrClosed):
		return "closed"
	default:
		return err.Error()
	}
}

// TestPanics: whoever waits is told, the program goes on, and so does the group.
func TestPanics(t *testing.T) {
	for name, work := range map[string]Work[int]{
		"at_once": func(context.Context, *Writer[int]) error { panic(errBusy) },
		"mid_stream": func(_ context.Context, w *Writer[int]) error {
			w.Begin(200)
			if _, err := io.WriteString(w, "a"); err != nil {
				return err
			}
			panic("no")
		},
		"exits": func(context.Context, *Writer[int]) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := group(t, Config{Transient: func(error) bool { return true }})
				a, b := join(t, g, key(1), work), join(t, g, key(1), work)
				for _, r := range []*Reader[int]{a, b} {
					_, _, err := read(t, r)
					var panicked *PanicError
					if !errors.As(err, &panicked) && !errors.Is(err, ErrExited) {
						t.Errorf("%v", err)
					}
					if panicked != nil && (!strings.Contains(err.Error(), "panic: ") || len(panicked.Stack) == 0) {
						t.Errorf("%v, stack %q", err, panicked.Stack)
					}
					r.Close()
				}
				if _, answer, err := read(t, join(t, g, key(1), after(0, "well"))); answer != "well" || err != nil {
					t.Errorf("the next one: %q, %v", answer, err)
				}
				synctest.Wait()
				if s := g.Stats(); s.Calls != 1 || s.Readers != 1 || s.Promoted != 0 {
					t.Errorf("%+v, want one reader that is not closed", s)
				}
			})
		})
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(t, Config{})
		r := join(t, g, key(1), after(time.Hour, ""))
		began := time.Now()
		g.Close()
		g.Close()
		if _, _, err := read(t, r); !errors.Is(err, ErrClosed) || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if _, ok := g.Join(t.Context(), key(2), after(0, "")); ok {
			t.Error("a closed group takes work")
		}
	})
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{Calls: -1}, "calls: -1, 1 to 1048576"},
		{Config{Followers: -1}, "followers: -1, 1 to 1048576"},
		{Config{CallBytes: 1}, "call bytes: 1, 65536 to 1073741824"},
		{Config{CallBytes: 1 << 20, Bytes: 1 << 19}, "bytes: 524288, 1048576 to 1099511627776"},
		{Config{Promotions: 101}, "promotions: 101, -1 to 100"},
	} {
		if _, err := New[int](test.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q, want %q", err, test.want)
		}
	}
}
