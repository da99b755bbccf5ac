package queue

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDepths: what waits is counted over all keys of a limit, and so is what it asks
// for together, whatever providers say.
func TestDepths(t *testing.T) {
	t.Parallel()
	t.Run("S2-29", func(t *testing.T) {
		t.Parallel()
		q := open(Terms{})
		elsewhere := waiter("c", 5)
		elsewhere.Place.Key = "eu"
		push(t, q, time.Second, waiter("a", 3))
		push(t, q, 2*time.Second, waiter("b", 4))
		push(t, q, 3*time.Second, elsewhere)
		want := []Depth{{Limit: "gpt", Waiting: 3, Oldest: 9 * time.Second, Tokens: []Cost{{"tokens", 12}}}}
		if diff := cmp.Diff(want, q.Depths(10*time.Second)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
