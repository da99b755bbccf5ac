package client_test

import (
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

// slowest asks every 5 ms for d, and returns how long the slowest answer took and how many
// were not granted from what a node held.
func (w *world) slowest(c *client.Client, d time.Duration) (slowest time.Duration, others int) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); pass(5 * time.Millisecond) {
		began := time.Now()
		if answer := w.ask(c, "open", time.Second); !answer.Granted || answer.Source != client.Escrow {
			others++
		}
		slowest = max(slowest, time.Since(began))
	}
	return slowest, others
}

const plenty = 1 << 40

// stocked is a client that was granted from what each node holds.
func stocked(t *testing.T, w *world) *client.Client {
	t.Helper()
	w.Stock("open", plenty)
	c := w.client(nil)
	if _, others := w.slowest(c, 5*time.Second); others > 0 {
		t.Errorf("%d were not granted from escrow", others)
	}
	return c
}

// TestWhatNodesHold: who is granted from what nodes hold asks every node in turn, so that
// each holds some; one that dies, has nothing left in an election, or hangs is noticed by
// no caller, or hardly.
func TestWhatNodesHold(t *testing.T) {
	t.Run("every_node_is_asked", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := stocked(t, w)
			defer c.Close()
			// All of them are warm now.
			before := []int{w.Counts(0).Acquires, w.Counts(1).Acquires, w.Counts(2).Acquires}
			w.slowest(c, 5*time.Second)
			for i := range 3 {
				if n := w.Counts(i).Acquires - before[i]; n < 1000/5 || n > 1000/2 {
					t.Errorf("node %d was asked %d times of 1000", i+1, n)
				}
			}
		})
	})
	t.Run("what_is_an_entrys_is_the_leaders", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			w.offer(c, "open", 5*time.Millisecond, time.Second)
			if n := w.Counts(1, 2).Acquires; n > 1 {
				t.Errorf("others than the leader were asked %d times", n)
			}
		})
	})
	t.Run("a_node_dies", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := stocked(t, w)
			defer c.Close()
			w.Down(0)
			w.NoLeader()
			if slowest, others := w.slowest(c, 2*time.Second); slowest > 5*time.Millisecond || others > 0 {
				t.Errorf("the slowest took %v, %d were not granted from escrow", slowest, others)
			}
			w.wantAlerts(0, 0)
		})
	})
	t.Run("one_of_two_has_nothing_left_in_an_election", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := stocked(t, w)
			defer c.Close()
			w.Down(0)
			w.NoLeader()
			w.Stock("open", 0, 1)
			if slowest, others := w.slowest(c, 2*time.Second); slowest > 5*time.Millisecond || others > 0 {
				t.Errorf("the slowest took %v, %d were not granted from escrow", slowest, others)
			}
		})
	})
	t.Run("nobody_has_anything_left_in_an_election", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := stocked(t, w)
			defer c.Close()
			w.NoLeader()
			w.Stock("open", 0)
			time.AfterFunc(time.Second/2, func() { w.Stock("open", plenty) })
			if slowest, _ := w.slowest(c, 2*time.Second); slowest < 400*time.Millisecond || slowest > 600*time.Millisecond {
				t.Errorf("the slowest took %v, want as long as nobody had anything", slowest)
			}
			w.wantAlerts(0, 0)
		})
	})
}

func TestNodesThatAreSlowToSay(t *testing.T) {
	t.Run("a_node_hangs", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := stocked(t, w)
			defer c.Close()
			w.Freeze(2)
			if slowest, others := w.slowest(c, 4*time.Second); slowest > 110*time.Millisecond || others > 0 {
				t.Errorf("the slowest took %v, %d were not granted from escrow", slowest, others)
			}
		})
	})
	t.Run("a_node_hangs_after_a_slow_time", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := stocked(t, w)
			defer c.Close()
			// Who has no more time than this asks nobody early, and pays for nothing.
			for range 5 {
				w.Hang(2)
				var asked sync.WaitGroup
				for range 400 {
					asked.Go(func() { w.ask(c, "open", 160*time.Millisecond) })
					pass(75 * time.Microsecond)
				}
				asked.Wait()
				w.Serve(2)
				pass(3 * time.Second)
			}
			w.Freeze(2)
			if slowest, others := w.slowest(c, 4*time.Second); slowest > 110*time.Millisecond || others > 0 {
				t.Errorf("the slowest took %v, %d were not granted from escrow", slowest, others)
			}
		})
	})
	t.Run("a_node_begins_again_with_nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := stocked(t, w)
			defer c.Close()
			w.Down(2)
			pass(2 * time.Second)
			w.Stock("open", 0, 2)
			if err := w.Up(2); err != nil {
				t.Fatal(err)
			}
			// What the process before it held is still out: it asks the leader each time.
			if _, others := w.slowest(c, time.Second); others > 30 {
				t.Errorf("%d of 200 were asked of it", others)
			}
			w.Stock("open", plenty, 2)
			w.slowest(c, time.Second)
			before := w.Counts(2).Acquires
			if _, others := w.slowest(c, 5*time.Second); others > 0 {
				t.Errorf("%d were not granted from escrow", others)
			}
			if n := w.Counts(2).Acquires - before; n < 200 || n > 450 {
				t.Errorf("it was asked %d times of 1000, want a third", n)
			}
		})
	})
	t.Run("everybody_is_slow", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := stocked(t, w)
			defer c.Close()
			w.Stock("open", 0)
			w.Delay(150 * time.Millisecond)
			w.slowest(c, 3*time.Second)
			// Who is in doubt is waited for.
			before := w.Counts().Acquires
			asked := 0
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); asked++ {
				w.ask(c, "open", time.Second)
			}
			if n := w.Counts().Acquires - before; n > asked*11/10+2 {
				t.Errorf("%d questions were asked %d times", asked, n)
			}
		})
	})
}
