package client_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client"
)

const patient = `
limits:
- {name: slow, rate: {requests: 1/10s}, burst: {requests: 1}}
- {name: watched, mode: warn, rate: {requests: 1/min}, burst: {requests: 1}}
- {name: team, match: {team: "*"}, per: [team], rate: {requests: 1000/s, tokens: 1000/s},
   burst: {requests: 1000, tokens: 1000}}
- {name: region, match: {region: eu}, rate: {requests: 1000/s}, burst: {requests: 1000}, on_quorum_loss: closed}
`

func (w *world) limits(text string) {
	w.t.Helper()
	if err := w.LimitsFile(text); err != nil {
		w.t.Fatal(err)
	}
}

func slow(wait time.Duration) client.Request {
	return client.Request{MaxWait: wait, Track: true, Charges: []client.Charge{charge("slow", 1)}}
}

func TestWaitingInTheQueue(t *testing.T) {
	t.Run("who_waits_is_granted_and_the_authority_is_well", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(patient)
			c := w.client(nil)
			defer c.Close()
			for i, want := range []time.Duration{0, 10 * time.Second} {
				began := time.Now()
				d, err := c.Acquire(t.Context(), slow(30*time.Second))
				took := time.Since(began)
				if err != nil || !d.Granted || d.Source != client.Consensus || took < want || took > want+time.Second {
					t.Fatalf("%d after %s: %+v, %v; want a grant after %s", i, took, d, err, want)
				}
				if q := d.Queue; q.Waited < want || want > 0 && q.Position != 1 {
					t.Errorf("%d: %+v, want that it waited %s", i, q, want)
				}
				if left := time.Until(d.Lease.Ends); left < 4*time.Second {
					t.Errorf("%d: the lease ends in %s, want about 5 s", i, left)
				}
			}
			w.wantAlerts(0, 0)
			if s := c.Status(); s.State.String() != "healthy" || len(s.Admitted) > 0 {
				t.Errorf("status %+v", s)
			}
		})
	})
	t.Run("G8_a_deadline_leaves_time_for_the_answer", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(patient)
			c := w.client(nil)
			defer c.Close()
			w.acquire(c, time.Second, slow(0))
			for range 5 {
				d := w.acquire(c, time.Second, slow(time.Minute))
				if d.Granted || d.Source == client.Local || d.Denials[0].Reason != "WAIT_EXPIRED" {
					t.Fatalf("got %+v, want WAIT_EXPIRED of the authority", d)
				}
				if d.Queue.Waited < 400*time.Millisecond {
					t.Errorf("waited %s of a second", d.Queue.Waited)
				}
			}
			w.wantAlerts(0, 0)
		})
	})
	t.Run("G8_a_waiter_hears_of_the_loss", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(patient)
			c := w.client(nil)
			defer c.Close()
			w.acquire(c, time.Second, slow(0))
			lost := time.AfterFunc(2*time.Second, func() { w.NoQuorum() })
			defer lost.Stop()
			began := time.Now()
			d, err := c.Acquire(t.Context(), slow(time.Minute))
			if err != nil || !d.Granted || d.Source != client.Local || time.Since(began) > 3*time.Second {
				t.Errorf("%+v, %v after %s; want a local grant at about 2 s", d, err, time.Since(began))
			}
			w.Serve()
		})
	})
	t.Run("A13_who_leaves_the_queue_takes_nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(patient)
			c := w.client(nil)
			defer c.Close()
			w.ask(c, "slow", time.Second)
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, leave)
			if d, err := c.Acquire(ctx, slow(time.Minute)); !errors.Is(err, context.Canceled) {
				t.Errorf("%+v, %v; want that its caller left", d, err)
			}
			pass(20 * time.Second)
			if level, leases := w.level("slow", ""); leases != 0 || level != 1 {
				t.Errorf("%d left, %d leases open; want 1 and none", level, leases)
			}
		})
	})
}

func TestDescribedWork(t *testing.T) {
	work := client.Request{
		Track: true, Attributes: map[string]string{"team": "red", "region": "eu"}, Amounts: map[string]int64{"tokens": 90},
	}
	t.Run("A20_what_was_charged_before_is_charged_without_the_authority", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(patient)
			c := w.client(nil)
			defer c.Close()
			red := work
			red.Attributes = map[string]string{"team": "red"}
			for range 2 {
				d := w.acquire(c, time.Second, red)
				if !d.Granted || len(d.Lease.Charges) != 2 || d.Lease.Charges[0].Limit != "team" {
					t.Fatalf("got %+v, want two charges of limit team", d)
				}
				w.acquire(c, time.Second, work)
			}
			w.NoQuorum()
			d := w.acquire(c, time.Second, red)
			charges := d.Lease.Charges
			if d.Source != client.Local || len(charges) != 2 || charges[0].Amount+charges[1].Amount != 91 {
				t.Errorf("got %+v, want a local grant of the same charges", d)
			}
			if d := w.acquire(c, time.Second, work); d.Granted || d.Denials[0].Limit != "region" {
				t.Errorf("got %+v, want that region is closed", d)
			}
			blue := red
			blue.Attributes = map[string]string{"team": "blue"}
			if d := w.acquire(c, time.Second, blue); !d.Granted || len(d.Lease.Charges) != 0 {
				t.Errorf("got %+v, want a local grant of what nobody knows", d)
			}
			w.Serve()
			pass(5 * time.Second)
			if got, _ := w.reported("team", "red"); got != 91 {
				t.Errorf("%d tokens are reported, want 91", got)
			}
		})
	})
	t.Run("what_limits_that_only_warn_would_have_refused", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			w.limits(patient)
			c := w.client(nil)
			defer c.Close()
			for i := range 2 {
				d := w.acquire(c, time.Second, client.Request{Charges: []client.Charge{charge("watched", 1)}})
				if !d.Granted || len(d.Warnings) != i || i > 0 && d.Warnings[0].Reason != "RATE" {
					t.Errorf("%d: %+v, want a grant and %d warnings", i, d, i)
				}
			}
		})
	})
	t.Run("bad_descriptions_are_the_callers_own", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			c := w.client(nil)
			defer c.Close()
			for field, change := range map[string]func(*client.Request){
				"max_wait":        func(r *client.Request) { r.MaxWait = time.Hour + 1 },
				"attributes":      func(r *client.Request) { r.Attributes["Team"] = "red" },
				"attributes.team": func(r *client.Request) { r.Attributes["team"] = "" },
				"amounts":         func(r *client.Request) { r.Attributes = nil },
				"amounts.tokens":  func(r *client.Request) { r.Amounts["tokens"] = 0 },
			} {
				r := work
				r.Attributes, r.Amounts = maps.Clone(work.Attributes), maps.Clone(work.Amounts)
				change(&r)
				_, err := c.Acquire(t.Context(), r)
				var bad *client.BadRequestError
				if !errors.As(err, &bad) || !strings.HasPrefix(bad.Field, field) {
					t.Errorf("%s: %v", field, err)
				}
			}
		})
	})
}
