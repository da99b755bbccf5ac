package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/feedback"
)

// TestFeedbackIsForEverybody: what one client was told by its provider closes the key for
// another one, who is told when to come back and not a moment before the provider's
// wait is over.
func TestFeedbackIsForEverybody(t *testing.T) {
	t.Run("S3-42_the_hint_is_the_floor_and_something_random_comes_on_top", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			told, other := w.client(nil), w.client(nil)
			defer told.Close()
			defer other.Close()
			throttled := feedback.Answer{
				Kind: feedback.Throttled, Limit: "open", Key: "tenant-1", Wait: 22 * time.Second, Reason: "rate_limit_exceeded",
			}
			done, err := told.Feedback(t.Context(), throttled, feedback.Answer{
				Kind: feedback.Observed, Limit: "nosuch", Remaining: map[string]int64{"requests": 3},
			})
			if err != nil || len(done) != 2 || done[0].Paused != 22*time.Second || !done[1].Gone {
				t.Fatalf("got %+v, %v; want a pause of 22 s and one that is gone", done, err)
			}
			d := w.ask(other, "open", time.Second)
			if d.Granted || d.Denials[0].Reason != "PAUSED" {
				t.Fatalf("got %+v, want PAUSED", d)
			}
			hint := d.Denials[0].RetryAfter
			if wait, never := d.RetryAfter(); never || hint < 21*time.Second || wait <= hint {
				t.Errorf("wait %v after a hint of %v, want the hint and a random extra", wait, hint)
			}
			// A node that is gone costs another attempt.
			w.Down(0)
			again, err := told.Feedback(t.Context(), throttled)
			if err != nil || again[0].Paused != 22*time.Second {
				t.Errorf("with a node down: got %+v, %v", again, err)
			}
			w.wantAlerts(0, 0)
		})
	})
}

func TestG8FeedbackEndsInTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.client(nil)
		w.Down()
		began := time.Now()
		answer := feedback.Answer{Kind: feedback.SpendCap, Limit: "open", Key: "tenant-1"}
		if done, err := c.Feedback(t.Context(), answer); err == nil {
			t.Errorf("nobody is there: got %+v", done)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began = time.Now()
		if _, err := c.Feedback(ctx, answer); err == nil || time.Since(began) > 100*time.Millisecond {
			t.Errorf("%v after %v, want an error within the deadline", err, time.Since(began))
		}
		_ = c.Close()
		if _, err := c.Feedback(t.Context(), answer); !errors.Is(err, client.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}
