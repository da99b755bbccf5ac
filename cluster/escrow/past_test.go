package escrow

import (
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// TestWhatIsLikely: what an earlier process of the node was given within two lives before
// the end of the log that it left is asked for at once, about as much of it; nothing else
// is, and however long the log is, what is remembered of it is bounded.
func TestWhatIsLikely(t *testing.T) {
	t.Parallel()
	before := func(limit, key, class string) *logv1.AskEscrow {
		return &logv1.AskEscrow{Limit: limit, Key: key, Dimension: "requests", Class: class}
	}
	t.Run("rule", func(t *testing.T) {
		t.Parallel()
		s := newTable(t)
		s.settle()
		const end = time.Hour
		s.Recall(end-2*testLife, before("k", "long ago", ""), 100, testLife)
		s.Recall(end-2*testLife+time.Second, before("k", "lately", ""), 40, testLife)
		s.Recall(end-time.Second, before("k", "lately", ""), 100, testLife)
		for _, gone := range []*logv1.AskEscrow{
			before("gone", "", ""), before("k", "", ""), before("g", "key", "live"), before("g", "", "gone"),
		} {
			s.Recall(end, gone, 100, testLife)
		}
		s.Warm(end)
		if s.step(0); len(s.asks) != 1 || s.asks[0].GetKey() != "lately" ||
			s.asks[0].GetAmount() < 90 || s.asks[0].GetAmount() > 150 {
			t.Fatalf("asked for %v", s.asks)
		}
		s.applied(s.asks[0], given(100))
		if !s.Take(keyed("lately", 10)).GetAcquire().GetGranted() {
			t.Error("not there for the first use")
		}
		s.Recall(end, before("k", "late", ""), 100, testLife)
		s.Warm(end)
		if s.step(0); len(s.asks) != 0 {
			t.Errorf("warmed twice: %v", s.asks)
		}
	})
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		s := newTable(t)
		s.settle()
		for i := range 3 * pastMax {
			at := time.Duration(i) * time.Millisecond
			s.Recall(at, before("k", fmt.Sprint(i), ""), 1, testLife)
		}
		last := time.Duration(3*pastMax) * time.Millisecond
		if n := len(s.past.pots); n > pastMax {
			t.Errorf("%d are remembered", n)
		}
		s.Warm(last)
		asked := 0
		for range 5 {
			s.step(0)
			asked += len(s.asks)
		}
		if asked < pastMax/2 || len(s.past.pots) != 0 {
			t.Errorf("asked for %d, and %d are remembered", asked, len(s.past.pots))
		}
	})
	t.Run("what_nobody_uses_goes_back", func(t *testing.T) {
		t.Parallel()
		s := newTable(t)
		s.settle()
		s.Recall(0, before("k", "x", ""), 100, testLife)
		s.Warm(time.Second)
		s.step(0)
		s.applied(s.asks[0], given(100))
		back := int64(0)
		for range 10 {
			s.step(time.Second / 2)
			back += tokensOf(s.back)
		}
		if back != 100 || s.Held()["k"] != 0 {
			t.Errorf("%d tokens of 100 went back", back)
		}
	})
}
