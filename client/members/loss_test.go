package members_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/client/members"
)

// G8: where every node is known to be away nobody waits at all, so that he can
// decide by himself.
func TestNobodyWaitsForNobody(t *testing.T) {
	t.Run("G8", func(t *testing.T) {
		bubble(t, 3, nil, func(t *testing.T, w *world) {
			w.settle(t)
			w.Down()
			w.await(t, time.Second, func(s members.State) bool { return s.Reach == members.Unreachable })
			if err := w.members.State().Err; !errors.Is(err, members.ErrUnreachable) {
				t.Errorf("the state says %v", err)
			}
			for range 100 {
				started := time.Now()
				_, err := w.ask(t, time.Minute)
				if !errors.Is(err, members.ErrUnreachable) || time.Since(started) > 0 {
					t.Fatalf("after %v: %v", time.Since(started), err)
				}
				pass(30 * time.Millisecond)
			}
			if err := w.Up(); err != nil {
				t.Fatal(err)
			}
			w.await(t, 1100*time.Millisecond, func(s members.State) bool { return s.Reach == members.Led })
			want := []members.Reach{members.Led, members.Unreachable, members.Led}
			if got := w.reaches(); !slices.Equal(got, want) {
				t.Errorf("told %v, want %v", got, want)
			}
		})
	})
}

// G8: at a cold start nothing is known, and a caller waits, as long as he has
// patience.
func TestColdStart(t *testing.T) {
	t.Run("G8", func(t *testing.T) {
		bubble(t, 3, func(c *clienttest.Cluster) { c.Freeze() }, func(t *testing.T, w *world) {
			started := time.Now()
			_, err := w.ask(t, 200*time.Millisecond)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != 200*time.Millisecond {
				t.Errorf("after %v: %v", time.Since(started), err)
			}
			// When each had its second it is known that nobody is there.
			_, err = w.ask(t, time.Minute)
			if !errors.Is(err, members.ErrUnreachable) || time.Since(started) != time.Second {
				t.Errorf("after %v: %v", time.Since(started), err)
			}
		})
	})
}

// A node that swallows what it is sent costs a cold start nothing while another
// one answers.
func TestColdStartBesideBlackHoles(t *testing.T) {
	bubble(t, 3, func(c *clienttest.Cluster) { c.Freeze(0, 1); c.Serve() }, func(t *testing.T, w *world) {
		started := time.Now()
		_, _, err := w.members.Session(t.Context())
		if err != nil || time.Since(started) > 0 {
			t.Errorf("after %v: %v", time.Since(started), err)
		}
	})
}

// G8: a node that vanishes without a word costs those who are on it a part of
// their patience, once; everybody who comes later is sent elsewhere.
func TestBlackHole(t *testing.T) {
	t.Run("G8", func(t *testing.T) {
		bubble(t, 3, nil, func(t *testing.T, w *world) {
			w.settle(t)
			w.Freeze(0)
			if e, err := w.ask(t, 100*time.Millisecond); e.ID != "n1" || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("asked %v: %v", e, err)
			}
			for range 300 {
				started := time.Now()
				if e, err := w.ask(t, 100*time.Millisecond); err != nil || e.ID == "n1" || time.Since(started) > 0 {
					t.Fatalf("asked %v, after %v: %v", e, time.Since(started), err)
				}
				pass(50 * time.Millisecond)
			}
			if n := w.Counts(0).Connections; n != 0 {
				t.Errorf("%d connections to it are left", n)
			}
			if err := w.Up(0); err != nil {
				t.Fatal(err)
			}
			w.await(t, 2*time.Second, func(s members.State) bool { return s.Reached == 3 })
		})
	})
}

// G8: that nobody can be reached is known within a second of the first call that
// misses its answer, and without any call within six; it is told once, and once
// that it is over.
func TestUnreachableIsNoticed(t *testing.T) {
	t.Run("G8", func(t *testing.T) {
		for name, calls := range map[string]bool{"called": true, "idle": false} {
			t.Run(name, func(t *testing.T) {
				bubble(t, 3, nil, func(t *testing.T, w *world) {
					w.settle(t)
					pass(20 * time.Second)
					w.Freeze()
					most := 6 * time.Second
					if calls {
						_, _ = w.ask(t, 100*time.Millisecond)
						most = time.Second
					}
					took := w.await(t, most, func(s members.State) bool { return s.Reach == members.Unreachable })
					t.Logf("noticed after %v", took)
					pass(30 * time.Second)
					if err := w.Up(); err != nil {
						t.Fatal(err)
					}
					took = w.await(t, 2*time.Second, func(s members.State) bool { return s.Reach == members.Led })
					t.Logf("over after %v", took)
					pass(30 * time.Second)
					want := []members.Reach{members.Led, members.Unreachable, members.Led}
					if got := w.reaches(); !slices.Equal(got, want) {
						t.Errorf("told %v, want %v", got, want)
					}
				})
			})
		}
	})
}

// A pause that is shorter than silence is forgiven: the session stays, and with it
// the answers that are under way.
func TestAPauseIsForgiven(t *testing.T) {
	bubble(t, 1, func(c *clienttest.Cluster) {
		c.Advertise(1, "")
		c.Advertise(2, "")
	}, func(t *testing.T, w *world) {
		s, e, err := w.members.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			w.Freeze(0)
			w.members.Failed(e, context.DeadlineExceeded)
			w.await(t, time.Second, func(s members.State) bool { return s.Reach == members.Unreachable })
			if err := w.Up(0); err != nil {
				t.Fatal(err)
			}
			w.await(t, time.Second, func(s members.State) bool { return s.Reach == members.Led })
		}
		if again, _, err := w.members.Session(t.Context()); again != s || err != nil {
			t.Errorf("it is another session: %v", err)
		}
	})
}

// A node that stays away is tried about twice a second, and one that is complained
// of is not asked more often than that by much.
func TestNobodyIsHammered(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, w *world) {
		w.settle(t)
		pass(10 * time.Second)
		asked := w.Counts(0).Statuses
		w.Down(2)
		pass(5 * time.Second)
		if n := w.Counts(0).Statuses - asked; n < 8 {
			t.Errorf("asked for its status %d times in 5 s after another was lost", n)
		}
		before := w.Counts(2)
		pass(time.Minute)
		if n := w.Counts(2).Dials - before.Dials; n > 200 {
			t.Errorf("%d dials in a minute", n)
		}
		if n := w.Counts(2).Dials; n < 60 {
			t.Errorf("%d dials in all", n)
		}
		pass(time.Minute)
		synctest.Wait()
		quiet := w.Counts(0).Statuses
		pass(time.Minute)
		if n := w.Counts(0).Statuses - quiet; n < 12 || n > 30 {
			t.Errorf("asked for its status %d times in a quiet minute", n)
		}
		loud := w.Counts(0).Statuses
		for range 10_000 {
			w.members.Failed(w.members.All()[0], context.DeadlineExceeded)
			pass(time.Millisecond)
		}
		if n := w.Counts(0).Statuses - loud; n < 15 || n > 60 {
			t.Errorf("asked for its status %d times in 10 s of complaints", n)
		}
	})
}
