package told

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/circuit"
)

// limits are those that the notices of circuits go to.
func limits() Config { return Config{Circuits: "tenant-deployment", Deployments: "deployment"} }

// opens makes a call of a tenant that is throttled three times, which opens its circuit.
func opens(t *testing.T, b *circuit.Board, now time.Duration, who string, hint time.Duration) {
	t.Helper()
	call := b.Call(who, "d", circuit.Shed)
	for range 3 {
		try, v := call.Forward(now)
		if try == nil {
			t.Fatalf("refused: %+v", v)
		}
		try.Done(now, circuit.Throttled, hint)
	}
}

func board(t *testing.T, c circuit.Config) *circuit.Board {
	t.Helper()
	c.Jitter = func(time.Duration) time.Duration { return 0 }
	b, err := circuit.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPublish(t *testing.T) {
	t.Run("S2-16_only_the_tenants_own_bucket_hears_of_its_circuit", func(t *testing.T) {
		bubble(t, limits(), func(t *testing.T, a *authority, teller *Teller) {
			b := board(t, circuit.Config{Shared: teller})
			opens(t, b, 0, `a|b\`, 0)
			pass(second)
			_, answers := a.told()
			if len(answers) != 1 {
				t.Fatalf("told %+v", answers)
			}
			got := answers[0]
			if got.Limit != "tenant-deployment" || got.Key != `a\|b\\|d` || got.Kind != feedback.Throttled ||
				got.Attributes != nil || got.Wait != 30*second-noticeAfter {
				t.Errorf("told %+v", got)
			}
			teller.Publish(0, everybody, circuit.Notice{Wait: 40 * second, Overloaded: true})
			teller.Publish(0, everybody, circuit.Notice{Closed: true})
			teller.Publish(0, tenant("c"), circuit.Notice{})
			pass(second)
			if _, answers = a.told(); len(answers) != 2 || answers[1].Limit != "deployment" || answers[1].Key != "d" ||
				answers[1].Kind != feedback.Overloaded {
				t.Errorf("told %+v", answers)
			}
		})
	})
	t.Run("S1-05_what_the_answer_said_is_not_said_again", func(t *testing.T) {
		for _, test := range []struct {
			name string
			hint time.Duration
			want int
		}{
			{"a_minute", time.Minute, 0},
			{"half_a_minute", 30 * second, 0},
			{"less", 10 * second, 1},
			{"nothing", 0, 1},
		} {
			t.Run(test.name, func(t *testing.T) {
				bubble(t, limits(), func(t *testing.T, a *authority, teller *Teller) {
					a.takes = 5 * time.Millisecond
					b := board(t, circuit.Config{Shared: teller})
					// A gateway says it to the circuit first.
					opens(t, b, 0, "a", test.hint)
					for range 3 {
						teller.Tell(about("a"), throttled(test.hint))
					}
					pass(10 * second)
					notices := 0
					_, answers := a.told()
					for _, one := range answers {
						if one.Limit != "" {
							notices++
						}
					}
					if notices != test.want {
						t.Errorf("told %+v, want %d notices", answers, test.want)
					}
					if s := teller.Stats(); s.Told+s.Merged != 4 || s.Waiting != 0 {
						t.Errorf("%+v, want 3 answers and a notice", s)
					}
				})
			})
		}
	})
	t.Run("S2-16_nobody_is_named_for_it", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			opens(t, board(t, circuit.Config{Shared: teller}), 0, "a", 0)
			teller.Publish(0, everybody, circuit.Notice{Wait: 40 * second, Overloaded: true})
			pass(second)
			if _, answers := a.told(); len(answers) != 0 {
				t.Errorf("told %+v", answers)
			}
		})
	})
}

// paused is a denial for a pause of a limit.
func paused(limit string, waits ...time.Duration) *client.Decision {
	d := &client.Decision{Source: client.Consensus, Denials: []client.Denial{
		{Reason: "RATE", Limit: "other", Dimension: "requests", RetryAfter: time.Hour},
	}}
	for _, wait := range waits {
		d.Denials = append(d.Denials, client.Denial{Reason: "PAUSED", Limit: limit, Key: "k", RetryAfter: wait})
	}
	return d
}

// closedUntil is an authority that keeps a limit closed until then.
func closedUntil(limit string, until time.Duration) func([]feedback.Answer) ([]feedback.Controlled, error) {
	opens := time.Now().Add(until)
	return func(answers []feedback.Answer) ([]feedback.Controlled, error) {
		done := make([]feedback.Controlled, len(answers))
		for i, one := range answers {
			if one.Limit == limit {
				done[i].Paused = max(0, time.Until(opens))
			}
		}
		return done, nil
	}
}

func TestLearn(t *testing.T) {
	t.Run("S1-05_what_another_gateway_was_told", func(t *testing.T) {
		bubble(t, limits(), func(t *testing.T, a *authority, teller *Teller) {
			b := board(t, circuit.Config{Shared: teller})
			a.set(closedUntil("account", 22*second))
			teller.Denied(paused("account", 26*second, 24*second), about("a"))
			synctest.Wait()
			for _, at := range []time.Duration{0, 21 * second} {
				v := b.Call("a", "d", circuit.Shed).Look(at)
				if want := 22*second - at; v.Action != circuit.Shed || v.Left != want || v.Key != tenant("a") {
					t.Errorf("after %v: %+v, want %v left", at, v, want)
				}
			}
			if try, _ := b.Call("b", "d", circuit.Shed).Forward(0); try == nil {
				t.Error("another tenant is refused")
			}
			pass(22 * second)
			if try, v := b.Call("a", "d", circuit.Shed).Forward(22 * second); try == nil || !v.Probe {
				t.Errorf("after its time: %+v, want a probe", v)
			}
			_, answers := a.told()
			if len(answers) != 1 || answers[0].Kind != feedback.Observed || answers[0].Limit != "account" ||
				answers[0].Key != "k" || answers[0].Remaining["requests"] != 1<<53 {
				t.Errorf("told %+v, want one question", answers)
			}
			if s := teller.Stats(); s.Told != 0 || s.Asked != 1 {
				t.Errorf("%+v", s)
			}
		})
	})
	t.Run("S2-35_a_thousand_denials_are_one_question", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			a.takes = 5 * time.Millisecond
			a.set(closedUntil("account", 22*second))
			for range 1000 {
				teller.Denied(paused("account", 30*second), about("a"))
				pass(10 * time.Millisecond)
			}
			if _, answers := a.told(); len(answers) != 1 {
				t.Errorf("%d were asked", len(answers))
			}
		})
	})
	t.Run("S2-16_of_a_whole_deployment", func(t *testing.T) {
		bubble(t, limits(), func(t *testing.T, a *authority, teller *Teller) {
			a.set(closedUntil("deployment", 40*second))
			teller.Denied(paused("deployment", 41*second), about("a"))
			synctest.Wait()
			learns(t, teller, tenant("a"), 0)
			learns(t, teller, everybody, 40*second)
		})
	})
	t.Run("S3-17_what_passes_soon_is_waited_out", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, _ *authority, teller *Teller) {
			teller.Tell(about("a"), throttled(4*second))
			pass(0)
			teller.Denied(paused("account", 4*second), about("a"))
			blocked := paused("account", time.Hour)
			blocked.Denials[1].Never = true
			teller.Denied(blocked, about("a"))
			pass(0)
			learns(t, teller, tenant("a"), 0)
			if s := teller.Stats(); s.Asked != 0 || s.Told != 1 {
				t.Errorf("%+v", s)
			}
		})
	})
	t.Run("S2-26_news_once_the_longest_wait_and_what_is_over_is_forgotten", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, _ *authority, teller *Teller) {
			hear := func(wait time.Duration) {
				teller.Tell(about("a"), throttled(wait))
				pass(second)
			}
			hear(20 * second)
			hear(10 * second)
			learns(t, teller, tenant("a"), 18*second)
			hear(12 * second)
			learns(t, teller, tenant("a"), 0)
			hear(30 * second)
			pass(9 * second)
			learns(t, teller, tenant("a"), 20*second)
			hear(30 * second)
			pass(30 * second)
			learns(t, teller, tenant("a"), 0)
			if s := teller.Stats(); s.Learned != 2 || len(teller.closings.byKey) != 0 {
				t.Errorf("%+v, %d kept", s, len(teller.closings.byKey))
			}
		})
	})
}

func TestClosings(t *testing.T) {
	t.Run("S2-27_it_is_bounded", func(t *testing.T) {
		c := newClosings(16)
		for n := range 100 {
			c.hear(0, circuit.Key{Tenant: string(rune('a' + n))}, time.Duration(1+n)*second)
		}
		if len(c.byKey) != 16 {
			t.Errorf("%d keys", len(c.byKey))
		}
		c.hear(10*second, tenant("new"), 20*second)
		if left, news := c.learn(10*second, tenant("new")); !news || left != 10*second || len(c.byKey) > 16 {
			t.Errorf("%v, %v; %d keys", left, news, len(c.byKey))
		}
	})
}
