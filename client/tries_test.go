package client_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/report"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/retry"
	"github.com/quorlease/quorlease/fsm/tally"
)

// counted is what the authority knows of a client's requests.
func (w *world) counted(name string) (stat fsm.ClientStat) {
	w.View(func(m *fsm.Machine, now bucket.Instant) { stat = m.Client(now, name) })
	return stat
}

// TestRetriesArePaidWithTokens: a process bounds its own retries, and asks nobody
// for those that it can't pay.
func TestRetriesArePaidWithTokens(t *testing.T) {
	t.Run("S3-25", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(func(c *client.Config) { c.RetryTokens = &retry.TokenRule{Cap: 50, Cost: 5, Refund: 1} })
			retried := func() *client.Decision {
				return w.acquire(c, time.Second, client.Request{Attempt: 1, Charges: []client.Charge{charge("open", 1)}})
			}
			for i := range 10 {
				if d := retried(); !d.Granted || d.Source == client.Local {
					t.Fatalf("retry %d: %+v, want a grant of the authority", i, d)
				}
			}
			before := w.Counts().Acquires
			d := retried()
			if d.Granted || d.Source != client.Local || d.Denials[0].Reason != "RETRY_BUDGET" || d.Denials[0].RetryAfter <= 0 {
				t.Errorf("%+v, want a refusal of the client's own", d)
			}
			if asked := w.Counts().Acquires - before; asked != 0 {
				t.Errorf("%d nodes were asked for a retry that can't be paid", asked)
			}
			if d := w.ask(c, "open", time.Second); !d.Granted {
				t.Errorf("a first attempt: %+v", d)
			}
			for range 4 {
				c.Tries().Done(report.Outcome{})
			}
			if d := retried(); d.Granted {
				t.Error("four successes pay for a retry")
			}
			c.Tries().Succeeded()
			if d := retried(); !d.Granted {
				t.Errorf("five successes don't pay for a retry: %+v", d)
			}
			_ = c.Close()
		})
	})
	t.Run("A17_ratio_above_1", func(t *testing.T) {
		t.Parallel()
		_, err := client.New(client.Config{
			Endpoints: []string{"127.0.0.1:1"}, Client: "c", RetryTokens: &retry.TokenRule{Cap: 5, Cost: 1, Refund: 2},
		})
		if err == nil {
			t.Error("a refund larger than the cost is taken")
		}
	})
}

// TestPermitsAreReported: what a client does by permits the authority counts, and
// the client holds itself to its budget meanwhile.
func TestPermitsAreReported(t *testing.T) {
	t.Run("S1-31", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			one, other := w.client(nil), w.client(nil)
			for _, c := range []*client.Client{one, other} {
				for range 30 {
					if v := c.Tries().Permit(0); !v.Admit {
						t.Fatalf("%+v", v)
					}
					c.Tries().Permit(1)
					c.Tries().Done(report.Outcome{Throttled: true, Error: "429"})
				}
				c.Tries().Done(report.Outcome{Error: "timeout\n" + string(make([]byte, 100))})
			}
			pass(2 * time.Second)
			got := w.counted("billing")
			// The last retries of each were beyond its own budget: 51 and no more than a
			// fifth.
			if got.Count.Total < 100 || got.Count.Total > 120 || got.Count.Retries < 40 || got.Count.Throttled != 60 {
				t.Errorf("%+v, want two gateways' requests together", got.Count)
			}
			if want := (tally.Fault{Text: "429", Times: got.Fault.Times}); got.Fault != want || got.Fault.Times == 0 {
				t.Errorf("%+v, want 429", got.Fault)
			}
			_ = one.Close()
			_ = other.Close()
		})
	})
	t.Run("nothing_is_lost_while_nobody_answers", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			w.Down()
			pass(2 * time.Second)
			for range 10 {
				c.Tries().Permit(0)
			}
			pass(20 * time.Second)
			if err := w.Up(); err != nil {
				t.Fatal(err)
			}
			pass(30 * time.Second)
			if got := w.counted("billing").Count.Total; got != 10 {
				t.Errorf("%d requests are known, want 10", got)
			}
			_ = c.Close()
		})
	})
	t.Run("S1-31_those_behind_a_gateway_under_their_own_names", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			one, other := w.client(nil), w.client(nil)
			for _, c := range []*client.Client{one, other} {
				for i := range 200 {
					name := fmt.Sprint("team-", i%100)
					c.TriesOf(name).Permit(uint32(i / 100))
				}
				c.Tries().Permit(0)
			}
			pass(3 * time.Second)
			for i := range 100 {
				if got := w.counted(fmt.Sprint("team-", i)).Count; got.Total != 4 || got.Retries != 2 {
					t.Fatalf("team %d: %+v, want two requests and two retries", i, got)
				}
			}
			if got := w.counted("billing").Count; got.Total != 2 || got.Retries != 0 {
				t.Errorf("%+v, want nothing of the others' among the gateways' own", got)
			}
			one.TriesOf("late").Permit(1)
			_ = one.Close()
			if got := w.counted("late").Count; got.Retries != 1 {
				t.Errorf("%+v, want that the end tells what waits", got)
			}
			_ = other.Close()
		})
	})
}
