package queue

import (
	"testing"
)

// TestWeightsChangeForThoseWhoWait: a weight that is changed counts from the next turn
// on, also for a client that never has nobody waiting.
func TestWeightsChangeForThoseWhoWait(t *testing.T) {
	t.Parallel()
	t.Run("G6_weights_change", func(t *testing.T) {
		t.Parallel()
		q := open(Terms{})
		for range 100 {
			push(t, q, 0, waiter("a", 1))
			push(t, q, 0, waiter("b", 1))
		}
		serve(q, 0, 20, 1)
		terms := *q.terms[gpt.Limit]
		terms.Weights = map[string]int64{"a": 3}
		q.Configure(0, map[string]*Terms{gpt.Limit: &terms})
		got := 0
		for _, w := range serve(q, 0, 40, 1) {
			if w.Client == "a" {
				got++
			}
		}
		if got < 29 || got > 31 {
			t.Errorf("a client of weight 3 got %d of 40 turns beside one of weight 1, want 30", got)
		}
	})
}

// TestAPartThatGrewIsNotFull: what overflows from a part is kept for its head, and no
// more than that after the part has become larger.
func TestAPartThatGrewIsNotFull(t *testing.T) {
	t.Parallel()
	for name, grows := range map[string]bool{"T48_as_it_was": false, "T48_larger": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLeader(t, halves, "live", "batch")
			head, _ := l.ask("batch", "backfill", 6)
			l.q.OwnFull(head, "tokens", 0)
			terms := *l.terms
			if grows {
				d := terms.Dimensions[0]
				d.Parts = []Part{d.Parts[0], {Share: d.Parts[1].Share, SubBurst: 5}}
				terms.Dimensions = []Dimension{d}
			}
			l.q.Configure(500*ms, map[string]*Terms{"gpt": &terms})
			keep := l.q.Keep(500*ms, gpt, "live", "tokens")
			if want := map[bool]int64{false: 2, true: 0}[grows]; keep != want {
				t.Errorf("%d are kept, want %d", keep, want)
			}
		})
	}
}
