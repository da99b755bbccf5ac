package events_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/cluster/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 10, 22, 12, 0, 0, 0, time.UTC)

func ring(size int) *events.Ring { return events.New(size, func() time.Time { return noon }) }

// publish publishes one event for each index.
func publish(r *events.Ring, indices ...uint64) {
	for _, i := range indices {
		r.Publish(events.Event{Index: i, Kind: events.LimitChanged, Severity: events.Info})
	}
}

func at(index uint64) *uint64 { return &index }

// rest reads what is there: "sequence:index" each.
func rest(t *testing.T, s *events.Subscription) string {
	t.Helper()
	var got []string
	for {
		e, ok, err := s.TryNext()
		if err != nil {
			got = append(got, err.Error())
			if errors.Is(err, events.ErrClosed) {
				return strings.Join(got, " ")
			}
			continue
		}
		if !ok {
			return strings.Join(got, " ")
		}
		got = append(got, fmt.Sprintf("%d:%d", e.Sequence, e.Index))
	}
}

func TestSubscribe(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		size    int
		indices []uint64
		from    *uint64
		want    string
	}{
		{"from_now_on", 8, []uint64{5, 6}, nil, "3:9 4:0"},
		{"all_that_is_kept", 8, []uint64{5, 6}, at(0), "1:5 2:6 3:9 4:0"},
		{"all_of_a_ring_that_turned", 2, []uint64{5, 6, 7}, at(0), "2 events lost, the oldest kept is at index 9 4:9 5:0"},
		{"from_an_index", 8, []uint64{5, 6, 7}, at(6), "2:6 3:7 4:9 5:0"},
		{"from_an_index_without_an_event", 8, []uint64{5, 7}, at(6), "2:7 3:9 4:0"},
		{"the_nodes_own_events_come_again", 8, []uint64{0, 5, 0, 0, 7, 0}, at(5), "2:5 3:0 4:0 5:7 6:0 7:9 8:0"},
		{"from_one_ahead", 8, []uint64{5}, at(9), "2:9 3:0"},
		{"from_far_ahead", 8, []uint64{5}, at(100), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := ring(c.size)
			publish(r, c.indices...)
			s, err := r.Subscribe(c.from)
			if err != nil {
				t.Fatal(err)
			}
			publish(r, 9, 0)
			if got := rest(t, s); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCompacted(t *testing.T) {
	t.Parallel()
	t.Run("older_than_what_is_kept", func(t *testing.T) {
		t.Parallel()
		r := ring(3)
		publish(r, 1, 2, 3, 4, 5)
		// Events 1 and 2 are gone, so 3 is the first index with nothing missing.
		for from, ok := range map[uint64]bool{1: false, 2: false, 3: true, 4: true} {
			_, err := r.Subscribe(at(from))
			if ok != (err == nil) {
				t.Errorf("from %d: got %v, want ok %v", from, err, ok)
			}
			var compacted *events.CompactedError
			if err != nil && (!errors.Is(err, events.ErrCompacted) || !errors.As(err, &compacted) || compacted.Oldest != 3) {
				t.Errorf("from %d: got %v, want compacted with oldest 3", from, err)
			}
		}
	})
	t.Run("an_own_event_that_is_gone_counts_at_its_place", func(t *testing.T) {
		t.Parallel()
		r := ring(2)
		publish(r, 5, 0, 6, 7)
		if _, err := r.Subscribe(at(5)); !errors.Is(err, events.ErrCompacted) {
			t.Errorf("from 5, whose own event is gone: got %v, want compacted", err)
		}
		if _, err := r.Subscribe(at(6)); err != nil {
			t.Errorf("from 6: got %v", err)
		}
	})
	t.Run("what_a_snapshot_skipped", func(t *testing.T) {
		t.Parallel()
		r := ring(8)
		r.Restored(100)
		publish(r, 0, 101)
		if _, err := r.Subscribe(at(100)); !errors.Is(err, events.ErrCompacted) {
			t.Errorf("from 100: got %v, want compacted", err)
		}
		s, err := r.Subscribe(at(101))
		if err != nil {
			t.Fatal(err)
		}
		if got := rest(t, s); got != "2:101" {
			t.Errorf("from 101: got %q", got)
		}
		if s, err = r.Subscribe(at(0)); err != nil || rest(t, s) != "1:0 2:101" {
			t.Errorf("from 0: got %v, want all that is kept", err)
		}
	})
}

func TestSlowReader(t *testing.T) {
	t.Parallel()
	r := ring(4)
	s, err := r.Subscribe(nil)
	if err != nil {
		t.Fatal(err)
	}
	publish(r, 1, 2, 3, 4, 5, 6, 7)
	_, _, err = s.TryNext()
	var lost *events.LostError
	if !errors.As(err, &lost) || lost.Lost != 3 || lost.Resume != 4 {
		t.Fatalf("got %v, want 3 lost, resume at 4", err)
	}
	if got := rest(t, s); got != "4:4 5:5 6:6 7:7" {
		t.Errorf("after the loss: got %q", got)
	}
}

// Who reads while the node gets a snapshot is told of what it skipped, at its place.
func TestReadersAreToldOfSnapshots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := ring(8)
		subscribe := func(from *uint64) *events.Subscription {
			s, err := r.Subscribe(from)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		publish(r, 1)
		live, ahead := subscribe(nil), subscribe(at(101))
		publish(r, 10)
		if got := rest(t, live); got != "2:10" {
			t.Errorf("before the snapshot: got %q", got)
		}
		told := make(chan error)
		go func() {
			_, err := live.Next(t.Context())
			told <- err
		}()
		synctest.Wait()
		r.Restored(100)
		var lost *events.LostError
		if err := <-told; !errors.As(err, &lost) || lost.Skipped != 90 || lost.Resume != 101 {
			t.Errorf("got %v, want that the events of 90 entries are missing", err)
		}
		publish(r, 101)
		// What is back where it was has skipped nothing.
		r.Restored(101)
		publish(r, 102)
		if got := rest(t, live); got != "3:101 4:102" {
			t.Errorf("after the snapshot: got %q", got)
		}
		if got := rest(t, ahead); got != "3:101 4:102" {
			t.Errorf("a reader that wants nothing of what was skipped: got %q", got)
		}
		if got := rest(t, subscribe(at(102))); got != "4:102" {
			t.Errorf("one that came later: got %q", got)
		}
	})
}

func TestNextWaits(t *testing.T) {
	t.Parallel()
	t.Run("for_the_next_event", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := ring(4)
			var readers sync.WaitGroup
			for range 3 {
				s, err := r.Subscribe(nil)
				if err != nil {
					t.Fatal(err)
				}
				readers.Go(func() {
					for want := uint64(1); want <= 2; want++ {
						if e, err := s.Next(t.Context()); err != nil || e.Sequence != want {
							t.Errorf("got %v, %v, want sequence %d", e, err, want)
						}
					}
				})
			}
			synctest.Wait()
			publish(r, 7)
			synctest.Wait()
			publish(r, 8)
			readers.Wait()
		})
	})
	t.Run("until_the_context_ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, err := ring(4).Subscribe(nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want deadline exceeded", err)
			}
		})
	})
	t.Run("until_the_ring_is_closed_and_read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := ring(4)
			s, err := r.Subscribe(nil)
			if err != nil {
				t.Fatal(err)
			}
			publish(r, 1)
			r.Close()
			r.Close()
			publish(r, 2)
			if e, err := s.Next(t.Context()); err != nil || e.Index != 1 {
				t.Errorf("got %v, %v, want what was published before", e, err)
			}
			if _, err := s.Next(t.Context()); !errors.Is(err, events.ErrClosed) {
				t.Errorf("got %v, want closed", err)
			}
		})
	})
}

func TestTexts(t *testing.T) {
	t.Parallel()
	one := func(text string) string {
		r := ring(1)
		r.Publish(events.Event{Text: text})
		s, err := r.Subscribe(at(0))
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Next(t.Context())
		if err != nil || e.Time != noon {
			t.Fatalf("got %v, %v", e, err)
		}
		return e.Text
	}
	for text, want := range map[string]string{
		"plain, ünïcode":           "plain, ünïcode",
		"a\nb\r":                   `a\u{000a}b\u{000d}`,
		"\x1b[31mred":              `\u{001b}[31mred`,
		"bad \xff":                 `bad \xff`,
		"right\u202eleft\u2028":    `right\u{202e}left\u{2028}`,
		strings.Repeat("x", 512):   strings.Repeat("x", 512),
		strings.Repeat("x", 513):   strings.Repeat("x", 509) + "…",
		strings.Repeat("ä", 300):   strings.Repeat("ä", 254) + "…",
		strings.Repeat("\n", 1000): strings.Repeat(`\u{000a}`, 63) + "…",
	} {
		if got := one(text); got != want {
			t.Errorf("%.40q: got %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "text"))
		r := ring(1)
		r.Publish(events.Event{Text: text, Client: text, Limit: text, Value: text})
		s, _ := r.Subscribe(at(0))
		e, _, _ := s.TryNext()
		for _, got := range []string{e.Text, e.Client, e.Limit, e.Value} {
			if len(got) > 512 || !utf8.ValidString(got) || strings.ContainsFunc(got, func(c rune) bool { return c < ' ' }) {
				t.Fatalf("%q became %q", text, got)
			}
		}
		if len(e.Client) > 128 || len(e.Limit) > 128 || len(e.Value) > 256 {
			t.Fatalf("lengths %d, %d, %d", len(e.Client), len(e.Limit), len(e.Value))
		}
	})
}

// TestReadersMissNothingUnsaid: whatever the pace, a reader gets every event
// once and in order, or is told exactly how many it missed.
func TestReadersMissNothingUnsaid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := ring(rapid.IntRange(1, 5).Draw(t, "size"))
		s, err := r.Subscribe(nil)
		if err != nil {
			t.Fatal(err)
		}
		var published, next uint64 = 0, 1
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "publish") {
				publish(r, uint64(rapid.IntRange(0, 5).Draw(t, "index")))
				published++
				continue
			}
			e, ok, err := s.TryNext()
			var lost *events.LostError
			switch {
			case errors.As(err, &lost):
				next += lost.Lost
			case ok && e.Sequence != next:
				t.Fatalf("got event %d, want %d", e.Sequence, next)
			case ok:
				next++
			case next != published+1:
				t.Fatalf("nothing to read at %d of %d", next, published)
			}
		}
	})
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	r := ring(16)
	var all sync.WaitGroup
	for range 4 {
		s, err := r.Subscribe(nil)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for {
				_, err := s.Next(context.Background())
				if errors.Is(err, events.ErrClosed) {
					return
				}
			}
		})
	}
	var publishers sync.WaitGroup
	for range 4 {
		publishers.Go(func() {
			for i := range uint64(1000) {
				publish(r, i)
			}
		})
	}
	publishers.Wait()
	r.Close()
	all.Wait()
}
