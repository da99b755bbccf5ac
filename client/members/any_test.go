package members_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/members"
)

// turns asks whose turn it is, n times.
func (w *world) turns(t *testing.T, n uint64, skip map[string]bool) (ids []string) {
	t.Helper()
	seen := map[string]bool{}
	for turn := range n {
		_, e, err := w.members.Any(t.Context(), turn, skip)
		if err != nil {
			t.Fatal(err)
		}
		seen[e.ID] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// What every node can answer is asked of each in turn, of the leader no more than of the
// others; of nobody who is doubted, knows no leader or was lost, as long as there is
// anybody else.
func TestAnyTakesTurns(t *testing.T) {
	want := func(t *testing.T, w *world, skip map[string]bool, ids ...string) {
		t.Helper()
		if got := w.turns(t, 9, skip); !slices.Equal(got, ids) {
			t.Errorf("asked %v, want %v", got, ids)
		}
	}
	bubble(t, 3, nil, func(t *testing.T, w *world) {
		w.settle(t)
		pass(2 * time.Second)
		want(t, w, nil, "n1", "n2", "n3")
		second := map[string]bool{"n2.test:7101": true}
		if want(t, w, second, "n1", "n3"); !w.members.Others(second) {
			t.Error("there are others than the second")
		}
		w.NoQuorum(1)
		w.await(t, 6*time.Second, func(members.State) bool { return len(w.turns(t, 9, nil)) == 2 })
		want(t, w, nil, "n1", "n3")
		w.Serve(1)
		w.await(t, 6*time.Second, func(members.State) bool { return len(w.turns(t, 9, nil)) == 3 })
		w.Down(0)
		pass(time.Millisecond)
		want(t, w, nil, "n2", "n3")
		// In an election they are all alike again.
		w.NoLeader()
		w.await(t, 6*time.Second, func(s members.State) bool { return s.Reach == members.Leaderless })
		want(t, w, nil, "n2", "n3")
		all := map[string]bool{"n2.test:7101": true, "n3.test:7101": true}
		if got := w.turns(t, 9, all); len(got) != 1 || w.members.Others(all) {
			t.Errorf("all are to be skipped, and %v were asked", got)
		}
	})
}

// A node that failed a call has no turn for a second.
func TestAnyLeavesOutWhoIsDoubted(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, w *world) {
		w.settle(t)
		pass(2 * time.Second)
		w.Hang(2)
		_, e, err := w.members.Any(t.Context(), 2, nil)
		if err != nil || e.ID != "n3" {
			t.Fatalf("asked %v: %v", e, err)
		}
		w.members.Failed(e, context.DeadlineExceeded)
		if got := w.turns(t, 9, nil); !slices.Equal(got, []string{"n1", "n2"}) || !w.members.Spare(nil, e) {
			t.Errorf("asked %v", got)
		}
		first := w.members.All()[0]
		if !w.members.Spare(nil, first) || w.members.Spare(map[string]bool{"n2.test:7101": true}, first) {
			t.Error("want the second, and nobody else, to be there beside the first")
		}
		// Where everybody is slow there is nobody to spare.
		for _, e := range w.members.All() {
			w.members.Failed(e, context.DeadlineExceeded)
		}
		if got := w.turns(t, 9, nil); len(got) != 3 || w.members.Spare(nil, e) {
			t.Errorf("asked %v, %v", got, w.members.Spare(nil, e))
		}
	})
}

// A node that has just come has few turns at first: it holds nothing yet.
func TestAnyLetsNodesGetWarm(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, w *world) {
		w.settle(t)
		pass(3 * time.Second)
		w.Down(2)
		pass(time.Second)
		if err := w.Up(2); err != nil {
			t.Fatal(err)
		}
		w.await(t, 6*time.Second, func(members.State) bool { return len(w.turns(t, 9, nil)) == 3 })
		turns := func() (n int) {
			const step = 0x9e3779b97f4a7c15
			for turn := range uint64(1000) {
				if _, e, _ := w.members.Any(t.Context(), turn*step>>32, nil); e.ID == "n3" {
					n++
				}
			}
			return n
		}
		before := -1
		for range 4 {
			now := turns()
			if now <= before {
				t.Errorf("%d of 1000 turns, %d half a second before", now, before)
			}
			before = now
			pass(500 * time.Millisecond)
		}
		if got := turns(); got < 280 || got > 380 {
			t.Errorf("%d of 1000 turns in the end, want a third", got)
		}
	})
}

// One that was just reached is asked before one that was asked in vain, and before one that
// lets people wait.
func TestAnyPrefersTheColdToTheTried(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, w *world) {
		w.settle(t)
		leader := w.members.State().Leader
		// Of these turns none is a cold node's.
		asked := func(skip map[string]bool) (ids []string) {
			for turn := range uint64(9) {
				_, e, err := w.members.Any(t.Context(), turn|0xffff<<16, skip)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, e.ID)
			}
			slices.Sort(ids)
			return slices.Compact(ids)
		}
		if got := asked(nil); !slices.Equal(got, []string{leader.ID}) {
			t.Errorf("asked %v, want the leader alone while nobody is warm", got)
		}
		if got := asked(map[string]bool{leader.Address: true}); !slices.Equal(got, []string{"n2", "n3"}) {
			t.Errorf("asked %v beside the leader, which was tried", got)
		}
		w.members.Slow(leader)
		if got := asked(nil); !slices.Equal(got, []string{"n2", "n3"}) {
			t.Errorf("asked %v beside the leader, which is slow", got)
		}
	})
}

// One that lets somebody wait has no turn for a second, but who answered others a moment
// ago is only busy.
func TestAnyLeavesOutWhoIsSlow(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, w *world) {
		w.settle(t)
		e := members.Endpoint{ID: "n3", Address: "n3.test:7101"}
		if !w.members.Answered(e) || w.members.Answered(members.Endpoint{}) {
			t.Error("want one that was just reached to be cold")
		}
		pass(2 * time.Second)
		w.turns(t, 9, nil)
		if w.members.Answered(e) {
			t.Error("a node that was there for two seconds is cold")
		}
		w.members.Slow(e)
		if got := w.turns(t, 9, nil); len(got) != 3 {
			t.Errorf("asked %v of three of whom none is silent", got)
		}
		pass(60 * time.Millisecond)
		w.members.Slow(e)
		w.members.Slow(members.Endpoint{})
		if got := w.turns(t, 9, nil); !slices.Equal(got, []string{"n1", "n2"}) {
			t.Errorf("asked %v, of whom the third is silent", got)
		}
	})
}
