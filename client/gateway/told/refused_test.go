package told

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/quorlease/quorlease/client/feedback"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

// TestHeaders: answers that are none cost the authority little, however many there are.
func TestHeaders(t *testing.T) {
	t.Run("S3-01_of_many_tenants", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			for round := range 500 {
				for n := range 100 {
					teller.Tell(about(fmt.Sprint((round*100+n)%1000)), left(int64(round)))
				}
				pass(10 * time.Millisecond)
			}
			pass(50 * time.Millisecond)
			teller.Tell(about("refused"), throttled(second))
			reports, answers := a.told()
			if n := len(reports); n < 50 || n > 53 {
				t.Errorf("%d reports in five seconds, want ten a second and one", n)
			}
			if last := answers[len(answers)-1]; last.Kind != feedback.Throttled {
				t.Errorf("a refusal waits for headers: %+v is last", last)
			}
			pass(5 * second)
			if s := teller.Stats(); s.Told+s.Merged+s.Stale != 50_001 || s.Waiting != 0 || s.Lost != 0 {
				t.Errorf("%+v", s)
			}
		})
	})
}

// TestRefused: what the authority does not take.
func TestRefused(t *testing.T) {
	poison := func(answers []feedback.Answer, most int, err error) ([]feedback.Controlled, error) {
		for _, one := range answers {
			if one.Attributes["tenant"] == "poison" {
				return nil, err
			}
		}
		if len(answers) > most {
			return nil, err
		}
		return make([]feedback.Controlled, len(answers)), nil
	}
	t.Run("S2-35_too_many_buckets_hear_of_one_report", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			a.set(func(answers []feedback.Answer) ([]feedback.Controlled, error) {
				return poison(answers, 20, refusal(codes.InvalidArgument, "BAD_FIELD"))
			})
			for n := range 100 {
				teller.Tell(about(fmt.Sprint(n)), throttled(9*second))
			}
			teller.Tell(about("poison"), throttled(9*second))
			for n := range 100 {
				teller.Tell(about(fmt.Sprint(100+n)), throttled(9*second))
			}
			pass(3 * second)
			_, answers := a.told()
			if s := teller.Stats(); len(answers) != 200 || s.Told != 200 || s.Refused != 1 || s.Waiting != 0 {
				t.Errorf("%d told, %+v; want all but one", len(answers), s)
			}
		})
	})
	t.Run("no_room_for_one_more_key_there", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			a.set(func(answers []feedback.Answer) ([]feedback.Controlled, error) {
				return poison(answers, 64, refusal(codes.ResourceExhausted, "REPORT_LIMIT"))
			})
			teller.Tell(about("poison"), throttled(20*second))
			teller.Tell(about("a"), throttled(20*second))
			pass(3 * second)
			if _, answers := a.told(); len(answers) != 1 || answers[0].Attributes["tenant"] != "a" {
				t.Errorf("told %+v", answers)
			}
			a.set(nil)
			pass(3 * second)
			if _, answers := a.told(); len(answers) != 2 {
				t.Errorf("told %+v, want the other one when there is room", answers)
			}
		})
	})
	t.Run("what_can_not_be_told", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			many := map[string]string{}
			for n := range 33 {
				many[fmt.Sprint("a", n)] = "x"
			}
			for _, wrong := range []About{
				{Limit: "No"},
				{Limit: "x", Key: "a\nb"},
				{Attributes: map[string]string{"Tenant": "a"}},
				{Attributes: map[string]string{"tenant": ""}},
				{Attributes: many},
				{Tenant: "a\x00", Deployment: "d"},
			} {
				teller.Tell(wrong, throttled(second))
			}
			v := throttled(second)
			v.Reason = "bad\n\xff" + string(make([]byte, 300))
			teller.Tell(about("a"), v)
			_, answers := a.told()
			if s := teller.Stats(); s.Refused != 6 || len(answers) != 1 {
				t.Fatalf("%+v, told %+v", s, answers)
			}
			if r := answers[0].Reason; len(r) != 256 || r[:5] != "bad??" {
				t.Errorf("reason %q", r)
			}
		})
	})
}

func TestClose(t *testing.T) {
	t.Run("S3-27_nothing_is_lost", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			a.takes = 10 * time.Millisecond
			for range 3 {
				for n := range 500 {
					teller.Tell(about(fmt.Sprint(n)), throttled(30*second))
					teller.Tell(about(fmt.Sprint(n)), left(int64(n)))
				}
				pass(time.Millisecond)
			}
			if err := teller.Close(); err != nil {
				t.Fatal(err)
			}
			last := map[string]int{}
			_, answers := a.told()
			for _, one := range answers {
				last[fmt.Sprint(one.Attributes["tenant"], one.Kind)]++
			}
			if s := teller.Stats(); len(last) != 1000 || s.Told+s.Merged != 3000 || s.Waiting != 0 || s.Lost != 0 {
				t.Errorf("%d of 1,000 were told, %+v", len(last), s)
			}
			teller.Tell(about("late"), throttled(second))
			if err := teller.Close(); err != nil || teller.Stats().Waiting != 0 {
				t.Errorf("once more: %v, %+v", err, teller.Stats())
			}
		})
	})
	t.Run("S3-27_it_goes_on_trying", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			a.set(func([]feedback.Answer) ([]feedback.Controlled, error) { return nil, context.DeadlineExceeded })
			teller.Tell(about("a"), &provider.Verdict{Class: provider.HardQuota})
			pass(20 * second)
			back := time.AfterFunc(1900*time.Millisecond, func() { a.set(nil) })
			defer back.Stop()
			if err := teller.Close(); err != nil {
				t.Error(err)
			}
			if reports, _ := a.told(); len(reports) != 1 || reports[0].at > 22*second {
				t.Errorf("told %+v", reports)
			}
		})
	})
	t.Run("nobody_answers", func(t *testing.T) {
		bubble(t, Config{}, func(t *testing.T, a *authority, teller *Teller) {
			a.takes = time.Hour
			teller.Tell(about("a"), throttled(60*second))
			teller.Tell(about("b"), left(1))
			pass(15 * second)
			began := time.Now()
			err := teller.Close()
			if took := time.Since(began); err == nil || took != 2*second {
				t.Errorf("%v after %v", err, took)
			}
			if want := "close: 1 answers of providers were not told"; err == nil || err.Error() != want {
				t.Errorf("%v, want %q: the headers are stale", err, want)
			}
		})
	})
}

func TestConfig(t *testing.T) {
	_, err := New(Config{
		Queue: 1, Batch: 65, HeadersGap: 1, Moment: 1, Keep: 1, LeastPause: -1, Keys: 1, Circuits: "No",
		Deployments: "Neither", Recheck: 1, CloseWithin: time.Hour,
	})
	want := `configuration of what is told: queue: 1, 64 to 1048576
batch: 65, 1 to 64
headers gap: 1ns, 10ms to 1m0s
moment: 1ns, 100ms to 1m0s
keep: 1ns, 1s to 1h0m0s
least pause: -1ns, 1ms to 1h0m0s
keys: 1, 16 to 1048576
circuits: "No" may not have 'N' there
deployments: "Neither" may not have 'N' there
recheck: 1ns, 1s to 1h0m0s
close within: 1h0m0s, 1ms to 1m0s
authority: missing`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if _, err := New(Config{Authority: &authority{}, Circuits: "x", Deployments: "x"}); err == nil {
		t.Error("one limit for both is taken")
	}
}
