package told

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

// people are who is called.
type people struct {
	mu            sync.Mutex
	called, freed []SpendCap
	log           bytes.Buffer
}

func (p *people) config() Config {
	return Config{
		OnSpendCap: func(s SpendCap) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.called = append(p.called, s)
		},
		OnCleared: func(s SpendCap) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.freed = append(p.freed, s)
		},
		Logger: slog.New(slog.NewTextHandler(&p.log, nil)),
	}
}

// want checks how often somebody was called, and how often told that it is over.
func (p *people) want(t *testing.T, called, freed int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.called) != called || len(p.freed) != freed {
		t.Errorf("called %+v, over %+v; want %d and %d", p.called, p.freed, called, freed)
	}
}

// vault is an authority that blocks what has no money, until somebody clears it.
type vault struct {
	mu      sync.Mutex
	blocked map[string]bool
}

func (v *vault) isBlocked(who string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.blocked[who]
}

func (v *vault) hear(answers []feedback.Answer) ([]feedback.Controlled, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	done := make([]feedback.Controlled, len(answers))
	for i, one := range answers {
		who := one.Attributes["tenant"]
		if one.Kind == feedback.SpendCap {
			v.blocked[who] = true
		}
		done[i].Blocked = v.blocked[who]
	}
	return done, nil
}

const anthropicCap = `{"type":"error","error":{"type":"rate_limit_error",
"message":"You have reached your API usage limits. You will regain access on %s at 00:00 UTC.",
"details":{"error_code":"enforced_spend_limit_reached"}}}`

func enforced(t *testing.T) *provider.Verdict {
	resumes := time.Now().Add(48 * time.Hour).UTC().Format("2006-01-02")
	return classified(t, "anthropic", 429, nil, fmt.Sprintf(anthropicCap, resumes))
}

func TestSpendCap(t *testing.T) {
	t.Run("S3-27_one_person_is_called_once_until_it_is_cleared", func(t *testing.T) {
		p, v := &people{}, &vault{blocked: map[string]bool{}}
		bubble(t, p.config(), func(t *testing.T, a *authority, teller *Teller) {
			a.takes = 5 * time.Millisecond
			a.set(v.hear)
			for range 100 {
				for _, who := range []string{"a", "b", "c"} {
					teller.Tell(about(who), enforced(t))
				}
				if !teller.Capped(about("a")) && !v.isBlocked("a") {
					t.Error("work goes on before the authority has heard")
				}
				pass(time.Millisecond)
			}
			pass(time.Minute)
			p.want(t, 1, 0)
			if c := p.called[0]; !c.Blocked || c.Deployment != "d" || c.Tenant != "a" ||
				c.Reason != "enforced_spend_limit_reached" || c.Resumes.IsZero() {
				t.Errorf("called for %+v", c)
			}
			if teller.Capped(about("a")) || teller.Stats().Capped != 1 {
				t.Errorf("the authority has it: %+v", teller.Stats())
			}
			reports, _ := a.told()
			if n := len(reports); n > 12 {
				t.Errorf("%d reports in a minute", n)
			}
			a.set(func(answers []feedback.Answer) ([]feedback.Controlled, error) {
				clear(v.blocked)
				return v.hear(answers)
			})
			pass(11 * second)
			p.want(t, 1, 1)
			a.set(v.hear)
			teller.Tell(about("b"), enforced(t))
			pass(second)
			p.want(t, 2, 1)
			if log := p.log.String(); strings.Count(log, "no money left") != 2 || strings.Count(log, "is over") != 1 {
				t.Errorf("logged\n%s", log)
			}
		})
	})
	t.Run("S3-27_each_deployment_and_reason", func(t *testing.T) {
		p, v := &people{}, &vault{blocked: map[string]bool{}}
		bubble(t, p.config(), func(t *testing.T, a *authority, teller *Teller) {
			a.set(v.hear)
			for range 3 {
				for _, reason := range []string{"credit_balance_exhausted", "project_spend_limit_exceeded"} {
					for _, where := range []string{"d", "e"} {
						poor := &provider.Verdict{Class: provider.HardQuota, Reason: reason, Scope: provider.Project}
						teller.Tell(About{Tenant: where, Deployment: where}, poor)
					}
				}
				pass(second)
			}
			p.want(t, 4, 0)
		})
	})
	t.Run("S3-27_the_authority_does_not_answer", func(t *testing.T) {
		p := &people{}
		bubble(t, p.config(), func(t *testing.T, a *authority, teller *Teller) {
			a.set(func([]feedback.Answer) ([]feedback.Controlled, error) { return nil, context.DeadlineExceeded })
			teller.Tell(about("a"), enforced(t))
			pass(second)
			p.want(t, 1, 0)
			if c := p.called[0]; c.Blocked {
				t.Errorf("called for %+v", c)
			}
			pass(10 * time.Minute)
			if !teller.Capped(about("a")) || teller.Capped(about("b")) || teller.Capped(About{Tenant: "a"}) {
				t.Error("what has no money goes on, or what has some does not")
			}
			v := &vault{blocked: map[string]bool{}}
			a.set(v.hear)
			pass(5 * second)
			if _, answers := a.told(); len(answers) != 1 || answers[0].Kind != feedback.SpendCap || answers[0].Wait != 0 {
				t.Errorf("told %+v, want the spend cap however late", answers)
			}
			if teller.Capped(about("a")) {
				t.Error("the authority has it, and it is refused here")
			}
			p.want(t, 1, 0)
		})
	})
}

// TestUnheardSpendCap: no limit at the authority hears of it.
func TestUnheardSpendCap(t *testing.T) {
	gone := func(answers []feedback.Answer) ([]feedback.Controlled, error) {
		done := make([]feedback.Controlled, len(answers))
		for i := range done {
			done[i].Gone = true
		}
		return done, nil
	}
	begin := func(t *testing.T, a *authority, teller *Teller, p *people) {
		t.Helper()
		a.set(gone)
		teller.Tell(about("a"), enforced(t))
		pass(second)
		p.want(t, 1, 0)
		if !teller.Capped(about("a")) || p.called[0].Blocked || teller.Stats().Unheard != 1 {
			t.Errorf("%+v, called %+v", teller.Stats(), p.called)
		}
	}
	t.Run("S3-27_it_ends_on_its_day", func(t *testing.T) {
		p := &people{}
		bubble(t, p.config(), func(t *testing.T, a *authority, teller *Teller) {
			begin(t, a, teller, p)
			pass(23 * time.Hour)
			p.want(t, 1, 0)
			pass(25 * time.Hour)
			p.want(t, 1, 1)
			if teller.Capped(about("a")) {
				t.Error("it is refused after its day")
			}
		})
	})
	t.Run("S3-27_somebody_clears_it", func(t *testing.T) {
		p := &people{}
		bubble(t, p.config(), func(t *testing.T, a *authority, teller *Teller) {
			begin(t, a, teller, p)
			teller.Cleared("e")
			p.want(t, 1, 0)
			teller.Cleared("d")
			pass(0)
			p.want(t, 1, 1)
			teller.Tell(about("a"), enforced(t))
			pass(2 * second)
			p.want(t, 2, 1)
		})
	})
	t.Run("S3-27_answers_that_were_under_way_end_nothing", func(t *testing.T) {
		p := &people{}
		bubble(t, p.config(), func(t *testing.T, a *authority, teller *Teller) {
			begin(t, a, teller, p)
			teller.Tell(about("a"), &provider.Verdict{})
			pass(5 * time.Minute)
			teller.Tell(about("a"), left(5))
			p.want(t, 1, 0)
			pass(5 * time.Minute)
			teller.Tell(about("a"), left(5))
			pass(0)
			p.want(t, 1, 1)
		})
	})
	t.Run("S3-27_a_gateway_that_ends_calls_first", func(t *testing.T) {
		p := &people{}
		bubble(t, p.config(), func(t *testing.T, a *authority, teller *Teller) {
			a.takes = time.Hour
			teller.Tell(about("a"), enforced(t))
			if err := teller.Close(); err == nil {
				t.Error("it was told")
			}
			p.want(t, 1, 0)
		})
	})
	t.Run("S3-27_they_are_bounded_and_none_is_left_out", func(t *testing.T) {
		p := &people{}
		bubble(t, p.config(), func(t *testing.T, a *authority, teller *Teller) {
			a.set(gone)
			for n := range incidentsMax + 100 {
				teller.Tell(About{Tenant: "a", Deployment: fmt.Sprint("d", n)}, enforced(t))
			}
			pass(second)
			p.want(t, incidentsMax+100, 100)
			if n := teller.Stats().Capped; n != incidentsMax {
				t.Errorf("%d are known", n)
			}
		})
	})
}
