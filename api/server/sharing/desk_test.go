package sharing_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/servertest"
	"github.com/quorlease/quorlease/api/server/sharing"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a node in the time of the bubble.
type node struct {
	*servertest.Node
	moved time.Time
	// said counts operations, cut makes them fail.
	said atomic.Int64
	cut  atomic.Bool
}

func (n *node) Do(ctx context.Context, op *logv1.Operation, attempt uint32) (*logv1.Result, error) {
	if n.cut.Load() {
		return nil, cluster.ErrNoQuorum
	}
	n.said.Add(1)
	n.Advance(time.Since(n.moved))
	n.moved = time.Now()
	return n.Node.Do(ctx, op, attempt)
}

// world is a desk and sessions that refresh at it.
type world struct {
	*testing.T
	node     *node
	desk     *sharing.Desk
	sessions []*session
}

type session struct {
	at   *sharing.Session
	held *quorleasev1.Fallback
	left bool
}

func run(t *testing.T, f func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &node{Node: servertest.New(), moved: time.Now()}
		n.Apply(&logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{
			Limits: []*logv1.Limit{{
				Name: "l", Target: 10_000, Lease: int64(time.Second), MaxKeys: 1,
				Dimensions:   []*logv1.Dimension{{Name: "requests", Amount: 1, Interval: int64(time.Second), Burst: 60}},
				OnQuorumLoss: logv1.OnQuorumLoss_ON_QUORUM_LOSS_SHARE,
			}},
		}}})
		w := &world{T: t, node: n, desk: sharing.New(n)}
		defer w.desk.Close()
		f(w)
	})
}

// join brings in so many sessions.
func (w *world) join(n int) {
	for range n {
		id := make([]byte, 16)
		binary.BigEndian.PutUint64(id, uint64(len(w.sessions)+1))
		w.sessions = append(w.sessions, &session{at: w.desk.Session(id, "owner"), held: &quorleasev1.Fallback{}})
	}
}

// refresh refreshes one session, which says at once that it knows of a new promise.
func (w *world) refresh(s *session) {
	w.Helper()
	for {
		answer, err := s.at.Refresh(&quorleasev1.RefreshRequest{Held: []*quorleasev1.HeldShare{
			{Limit: "l", Version: s.held.GetVersion(), Left: s.left},
		}})
		if err != nil {
			w.Fatal(err)
		}
		told := answer.GetShares()[0]
		if told.GetVersion() < s.held.GetVersion() || told.GetVersion() == 0 {
			return
		}
		fresh := told.GetVersion() > s.held.GetVersion()
		if s.held = told; !fresh {
			return
		}
	}
}

// pass is so many seconds in which every session refreshes, each at its own time.
func (w *world) pass(seconds int) {
	w.Helper()
	for range seconds {
		for _, s := range w.sessions {
			w.refresh(s)
			<-time.After(time.Second / time.Duration(len(w.sessions)))
		}
	}
}

// least is the smallest share, and all of them together.
func (w *world) least() (least, sum int64) {
	least = 1_000_000
	for _, s := range w.sessions {
		least = min(least, s.held.GetSharePpm())
		sum += s.held.GetSharePpm()
	}
	return least, sum
}

// TestDesk is one desk in virtual time.
func TestDesk(t *testing.T) {
	t.Run("A20_a_hundred_join_one", func(t *testing.T) {
		run(t, func(w *world) {
			w.join(1)
			w.pass(3)
			if least, _ := w.least(); least != 1_000_000 {
				t.Fatalf("one alone has %d", least)
			}
			w.join(100)
			for second := 1; ; second++ {
				w.pass(1)
				least, sum := w.least()
				if sum > 1_000_000 {
					t.Fatalf("after %d s all hold %d together", second, sum)
				}
				if least >= 9_900*9/10 {
					t.Logf("fair after %d s", second)
					break
				}
				if second == 5 {
					t.Fatalf("after %d s somebody has %d, fair is 9900", second, least)
				}
			}
			w.pass(5)
			before := w.node.said.Load()
			w.pass(60)
			if said := w.node.said.Load() - before; said > 20 {
				t.Errorf("%d operations in a minute in which nothing changes, want one in four seconds", said)
			}
		})
	})
	t.Run("T50_a_node_that_is_cut_off_promises_nothing_new", func(t *testing.T) {
		run(t, func(w *world) {
			w.join(1)
			w.pass(3)
			w.node.cut.Store(true)
			w.pass(20)
			held := w.sessions[0].held
			if held.GetValidFor().AsDuration() != 0 || held.GetHold().AsDuration() > 10*time.Minute-16*time.Second {
				t.Errorf("after 20 s without the others: valid for %v, held for %v",
					held.GetValidFor().AsDuration(), held.GetHold().AsDuration())
			}
			w.node.cut.Store(false)
			w.pass(2)
			if v := w.sessions[0].held.GetValidFor().AsDuration(); v < 5*time.Second {
				t.Errorf("valid for %v when the others are back", v)
			}
		})
	})
	t.Run("A20_good_bye", func(t *testing.T) {
		run(t, func(w *world) {
			w.join(2)
			w.pass(5)
			w.sessions[1].left = true
			w.refresh(w.sessions[1])
			gone := w.sessions[1]
			w.sessions = w.sessions[:1]
			w.pass(4)
			if least, _ := w.least(); least != 1_000_000 {
				t.Errorf("who stays has %d when the other has left", least)
			}
			// It comes back: what it had before is nothing.
			gone.left, gone.held = false, &quorleasev1.Fallback{}
			if w.refresh(gone); gone.held.GetVersion() != 0 {
				t.Errorf("who comes back is promised %v at once", gone.held)
			}
			w.sessions = append(w.sessions, gone)
			w.pass(5)
			if least, sum := w.least(); least != 500_000 || sum != 1_000_000 {
				t.Errorf("shares of at least %d, %d together", least, sum)
			}
		})
	})
	t.Run("G10_a_silent_session_is_not_spoken_of", func(t *testing.T) {
		run(t, func(w *world) {
			w.join(1)
			w.pass(3)
			before := w.node.said.Load()
			<-time.After(time.Minute)
			if said := w.node.said.Load() - before; said > 1 {
				t.Errorf("%d operations about a session that says nothing", said)
			}
			var sessions int
			_ = w.node.View(t.Context(), true, func(m *fsm.Machine, _ bucket.Instant) {
				sessions, _ = m.Shares().Sessions("l")
			})
			if sessions != 1 {
				t.Error("what it may be using is not kept")
			}
		})
	})
}

// TestLimitsThatAreNotShared: whoever names limits of which there is nothing to share, a
// thousand of them a second, takes neither room nor the log.
func TestLimitsThatAreNotShared(t *testing.T) {
	t.Run("G10", func(t *testing.T) {
		run(t, func(w *world) {
			w.join(1)
			for i := range 1000 {
				refused, err := w.sessions[0].at.Refresh(&quorleasev1.RefreshRequest{Held: []*quorleasev1.HeldShare{
					{Limit: fmt.Sprint("none-", i)}, {Limit: fmt.Sprint("none-", i, "-left"), Left: true},
				}})
				if err != nil || len(refused.GetShares()) != 2 || refused.GetShares()[0].SharePpm != nil {
					t.Fatalf("%v, %v: want two limits, and no promise", refused, err)
				}
			}
			<-time.After(5 * time.Second)
			if said := w.node.said.Load(); said > 0 {
				t.Errorf("%d operations about limits that are not there", said)
			}
		})
	})
}

// TestRefreshIsChecked: what is wrong is refused, and nothing is taken in.
func TestRefreshIsChecked(t *testing.T) {
	run(t, func(w *world) {
		w.join(1)
		for _, held := range [][]*quorleasev1.HeldShare{
			nil, make([]*quorleasev1.HeldShare, 65),
			{{Limit: "no name"}},
			{{Limit: "l", Version: 1 << 63}},
			{{Limit: "l"}, {Limit: "l"}},
		} {
			if _, err := w.sessions[0].at.Refresh(&quorleasev1.RefreshRequest{Held: held}); err == nil {
				t.Errorf("%v is taken", held)
			}
		}
	})
}
