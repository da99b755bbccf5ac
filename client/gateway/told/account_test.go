package told

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

func upTo(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most)))
}

// fickle is an authority that takes reports, refuses them or does not answer, by chance.
func fickle(r *rand.Rand) func([]feedback.Answer) ([]feedback.Controlled, error) {
	return func(answers []feedback.Answer) ([]feedback.Controlled, error) {
		switch r.IntN(6) {
		case 0:
			return nil, context.DeadlineExceeded
		case 1:
			if len(answers) > 8 || r.IntN(4) == 0 {
				return nil, refusal(codes.InvalidArgument, "BAD_FIELD")
			}
		case 2:
			return nil, refusal(codes.ResourceExhausted, "REPORT_LIMIT")
		}
		done := make([]feedback.Controlled, len(answers))
		for i := range done {
			done[i] = feedback.Controlled{
				Paused: upTo(r, 20*second), Blocked: r.IntN(8) == 0, Gone: r.IntN(8) == 0, PacePPM: 1e6,
			}
		}
		return done, nil
	}
}

// given tells one answer, or that a circuit has opened.
func given(r *rand.Rand, teller *Teller) {
	who := about(fmt.Sprint(r.IntN(90)))
	switch r.IntN(8) {
	case 0:
		teller.Publish(0, tenant(who.Tenant), circuit.Notice{Wait: second + upTo(r, time.Minute)})
	case 1:
		teller.Tell(who, &provider.Verdict{Class: provider.HardQuota, Reason: fmt.Sprint(r.IntN(3))})
	case 2:
		teller.Tell(who, overloaded(upTo(r, 20*second)))
	case 3:
		teller.Tell(About{Limit: "Wrong"}, throttled(second))
	case 4, 5:
		teller.Tell(who, throttled(upTo(r, 20*second)))
	default:
		teller.Tell(who, left(r.Int64N(1000)))
	}
}

// TestNothingVanishes: whatever comes and whatever becomes of it, each answer is counted
// once, and in the end none waits.
func TestNothingVanishes(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed_", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			c := limits()
			c.Queue = 64 + r.IntN(200)
			bubble(t, c, func(t *testing.T, a *authority, teller *Teller) {
				a.takes = upTo(r, 20*time.Millisecond)
				a.set(fickle(rand.New(rand.NewPCG(seed, 2))))
				const answers = 3000
				for range answers {
					given(r, teller)
					if r.IntN(20) == 0 {
						teller.Denied(paused("account", upTo(r, 30*second)), about("a"))
					}
					if r.IntN(10) == 0 {
						pass(upTo(r, 300*time.Millisecond))
					}
				}
				a.set(nil)
				if err := teller.Close(); err != nil {
					t.Error(err)
				}
				s := teller.Stats()
				if sum := s.Told + s.Merged + s.Stale + s.Lost + s.Refused; sum != answers || s.Waiting != 0 {
					t.Errorf("%d of %d: %+v", sum, answers, s)
				}
				if seed == 0 {
					t.Logf("%+v", s)
				}
			})
		})
	}
}
