package client_test

import (
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// sharers are so many further clients that use a limit, and what ends them. Each knows
// its share when it returns.
func (w *world) sharers(limit string, n int) ([]*client.Client, func()) {
	w.t.Helper()
	var all []*client.Client
	for range n {
		c := w.client(nil)
		w.ask(c, limit, time.Second)
		all = append(all, c)
	}
	w.shared(limit, n+1)
	return all, func() {
		for _, c := range all {
			c.Close()
		}
	}
}

// fourth makes whoever uses a limit the one of four clients that share it, and returns what
// ends the others.
func (w *world) fourth(limit string) func() {
	w.t.Helper()
	_, end := w.sharers(limit, 3)
	return end
}

// shared waits until so many sessions share a limit, and for as long as it takes until they
// do so in equal parts and know of it.
func (w *world) shared(limit string, n int) {
	w.t.Helper()
	sessions, promised := 0, int64(0)
	for range 20 {
		pass(time.Second)
		w.View(func(m *fsm.Machine, _ bucket.Instant) { sessions, promised = m.Shares().Sessions(limit) })
		if sessions == n && promised == int64(1_000_000/n*n) {
			pass(5 * time.Second)
			return
		}
	}
	w.t.Fatalf("%d sessions share %d ppm of %s, want %d all of it", sessions, promised, limit, n)
}

// TestFourGateways is A20 with shares that the authority works out: four that are cut
// off for a minute stay inside the limit together.
func TestFourGateways(t *testing.T) {
	t.Run("A20_T33_four_share_a_limit", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "share", time.Second)
			others, end := w.sharers("share", 3)
			defer end()
			w.NoQuorum()
			all, granted := append(others, c), make([]int, 4)
			for range 60 * 250 {
				for i, one := range all {
					if w.ask(one, "share", time.Second).Granted {
						granted[i]++
					}
				}
				pass(4 * time.Millisecond)
			}
			sum := 0
			for i, n := range granted {
				if sum += n; n < 1450 || n > 1525 {
					t.Errorf("gateway %d has admitted %d in a minute, want a quarter of 100/s", i, n)
				}
			}
			if sum > 6100 {
				t.Errorf("%d admitted together, want at most the limit's own 100 + 100 × 60", sum)
			}
			w.Serve()
		})
	})
	t.Run("T52_a_newcomer_has_nothing_and_not_the_file's_quarter", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "share", time.Second)
			w.shared("share", 1)
			late := w.client(nil)
			defer late.Close()
			w.ask(late, "share", time.Second)
			w.NoQuorum()
			w.away(late)
			if granted, _ := w.offer(late, "share", 10*time.Millisecond, 10*time.Second); granted != 0 {
				t.Errorf("the newcomer admits %d though another has all", granted)
			}
			w.away(c)
			if granted, _ := w.offer(c, "share", 5*time.Millisecond, 10*time.Second); granted < 900 {
				t.Errorf("who has all admits %d in 10 s, want about all of 100/s", granted)
			}
			w.Serve()
		})
	})
	t.Run("A20_who_leaves_frees_at_once_and_who_vanishes_does_not", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "share", time.Second)
			_, end := w.sharers("share", 2)
			end()
			w.shared("share", 1)
			gone, end := w.sharers("share", 1)
			w.NoQuorum()
			w.away(gone[0])
			// It can't say good-bye.
			end()
			w.Serve()
			pass(time.Minute)
			w.View(func(m *fsm.Machine, _ bucket.Instant) {
				if sessions, promised := m.Shares().Sessions("share"); sessions != 2 || promised != 1_000_000 {
					t.Errorf("%d sessions share %d ppm, want the one that vanished among them", sessions, promised)
				}
			})
			w.ask(c, "share", time.Second)
			pass(10 * time.Minute)
			w.shared("share", 1)
		})
	})
}
