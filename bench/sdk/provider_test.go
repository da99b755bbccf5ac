package sdk_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/sdk"
	"github.com/quorlease/quorlease/bench/sdk/sdktest"
	"github.com/quorlease/quorlease/bench/upstream"
)

const storm = 20

// met is what users meet at a provider, each of them by his own name, and what comes
// of it.
var met = []struct {
	call    sdk.Call
	fault   upstream.Fault
	outcome upstream.Outcome
	// attempts at the provider, for each call.
	attempts int
	// left says whether some of the answer had come.
	left bool
}{
	{sdk.Call{Name: "plain"}, upstream.Fault{}, upstream.Served, 1, true},
	{sdk.Call{Name: "stream", Stream: true}, upstream.Fault{}, upstream.Served, 1, true},
	{sdk.Call{Name: "once_refused"}, refuse(upstream.InputTokens, 20*time.Second, 1), upstream.Served, 2, true},
	{sdk.Call{Name: "rate"}, refuse(upstream.InputTokens, 59*time.Second, 0), upstream.Refused, 3, false},
	{sdk.Call{Name: "slow_down"}, refuse(upstream.SlowDown, 30*time.Second, 0), upstream.Refused, 3, false},
	{sdk.Call{Name: "overload"}, refuse(upstream.Overload, 9*time.Second, 0), upstream.Refused, 3, false},
	// Nothing in a body is looked at: a cap that never clears is asked three times.
	{sdk.Call{Name: "spend_cap"}, refuse(upstream.SpendCap, 0, 0), upstream.Refused, 3, false},
	{sdk.Call{Name: "storm", Times: storm}, refuse(upstream.Requests, 5*time.Second, 0), upstream.Refused, 3, false},
	{sdk.Call{Name: "first_event", Stream: true}, upstream.Fault{Kind: upstream.Spoil}, upstream.Spoilt, 1, false},
	{sdk.Call{Name: "midway", Stream: true}, upstream.Fault{Kind: upstream.Spoil, After: 2}, upstream.Spoilt, 1, true},
	{sdk.Call{Name: "broken"}, upstream.Fault{Kind: upstream.Break}, upstream.Broken, 3, false},
	{
		sdk.Call{Name: "broken_midway", Stream: true},
		upstream.Fault{Kind: upstream.Break, After: 2},
		upstream.Broken, 1,
		true,
	},
}

func refuse(cause upstream.Cause, wait time.Duration, calls int) upstream.Fault {
	return upstream.Fault{Kind: upstream.Refuse, Cause: cause, Wait: wait, Calls: calls}
}

// simulated is a provider on a port, at which everybody meets what he is to meet.
func simulated(t *testing.T, api upstream.API) (*upstream.Server, *upstream.Listening) {
	t.Helper()
	s, err := upstream.New(upstream.Config{API: api, Clock: upstream.Speed(60), TokensPerEvent: 3})
	if err != nil {
		t.Fatal(err)
	}
	var faults []upstream.Fault
	for _, row := range met {
		if row.fault.Kind != "" {
			row.fault.Client = row.call.Name
			faults = append(faults, row.fault)
		}
	}
	if err := s.SetFaults(faults...); err != nil {
		t.Fatal(err)
	}
	l, err := upstream.Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

func TestWhatUsersMeet(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b sdk.Behaviour) {
		s, l := simulated(t, sdktest.API(b.SDK))
		defer l.Close()
		var calls []sdk.Call
		for _, row := range met {
			row.call.URL, row.call.Client = l.URL, row.call.Name
			calls = append(calls, row.call)
		}
		results := make(map[string][]sdk.Result)
		for _, result := range drive(t, b.SDK, calls...) {
			results[result.Name] = append(results[result.Name], result)
		}
		seen := make(map[string][]upstream.Call)
		for _, call := range s.Ledger().Calls {
			seen[call.Client] = append(seen[call.Client], call)
		}
		whole := results["plain"][0].Text
		for _, row := range met {
			t.Run(row.call.Name, func(t *testing.T) {
				name := row.call.Name
				if want := row.attempts * len(results[name]); len(seen[name]) != want {
					t.Fatalf("%d attempts of %d calls, want %d: %+v", len(seen[name]), len(results[name]), want, seen[name])
				}
				for n, result := range results[name] {
					of := seen[name][n*row.attempts : (n+1)*row.attempts]
					last := of[row.attempts-1]
					if served := last.Outcome == upstream.Served; last.Outcome != row.outcome || result.OK != served ||
						served && (result.Text != whole || result.Input != last.Billed.Input || result.Output != last.Billed.Output) {
						t.Errorf("%+v, seen as %+v", result, last)
					}
					if (result.Text != "") != row.left {
						t.Errorf("its user has %q", result.Text)
					}
					failedAs(t, b, result, last)
					r := sdk.Refusal{Status: 503, Header: map[string]string{}}
					if hint := row.fault.Wait; hint > 0 {
						r.Header["Retry-After"] = strconv.Itoa(int(hint / time.Second))
					}
					waited(t, result.Waits, b.Expect(r).Waits[:row.attempts-1])
				}
			})
		}
	})
}

// failedAs compares the error that the user got with the table.
func failedAs(t *testing.T, b sdk.Behaviour, result sdk.Result, last upstream.Call) {
	t.Helper()
	want := ""
	switch {
	case result.OK:
	case last.Cause == upstream.SpendCap:
		want = b.SpendCap
	case last.Outcome == upstream.Broken && last.Stream:
		// What Node's own client says of a connection that ends too early.
		want = "TypeError"
	case last.Outcome == upstream.Broken:
		want = "APIConnectionError"
	case last.Outcome == upstream.Spoilt:
		want = b.Class(0)
	default:
		want = b.Class(last.Status)
	}
	if result.Class != want {
		t.Errorf("its user got %s, want %s: %+v", result.Class, want, result)
	}
}

// A gateway that says not to retry is asked once a call, however fast its user calls.
func TestAStormAtAGateway(t *testing.T) {
	t.Parallel()
	budget := sdk.Gateway()[0]
	each(t, func(t *testing.T, b sdk.Behaviour) {
		refuser := sdk.NewRefuser(budget)
		l, err := upstream.Listen(refuser)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		drive(t, b.SDK, sdk.Call{Name: "storm", URL: l.URL + "/" + budget.Name, Times: storm})
		if n := len(refuser.Attempts(budget.Name)); n != storm {
			t.Errorf("%d attempts of %d calls", n, storm)
		}
	})
}

// The interfaces that only OpenAI has are understood by its SDKs.
func TestResponsesAndEmbeddings(t *testing.T) {
	t.Parallel()
	for _, name := range []sdk.Name{sdk.OpenAI7, sdk.OpenAI6} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			_, l := simulated(t, upstream.OpenAI)
			defer l.Close()
			results := drive(
				t, name, sdk.Call{URL: l.URL, What: "responses"}, sdk.Call{URL: l.URL, What: "responses", Stream: true},
				sdk.Call{URL: l.URL, What: "embeddings"},
			)
			plain, stream, vectors := results[0], results[1], results[2]
			if !plain.OK || plain.Text == "" || stream.Text != plain.Text || plain.Output != 16 || stream.Output != 16 ||
				plain.Input == 0 || stream.Input != plain.Input {
				t.Errorf("%+v, as a stream %+v", plain, stream)
			}
			if !vectors.OK || vectors.Text != "64" || vectors.Input != plain.Input {
				t.Errorf("embeddings: %+v, want one vector of 64 numbers", vectors)
			}
		})
	}
}

// A provider's hint is what it takes: whoever waits it out is served, at a provider
// that counts what it refuses too.
func TestAHintThatIsWaitedOutIsEnough(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b sdk.Behaviour) {
		api := sdktest.API(b.SDK)
		s, err := upstream.New(upstream.Config{
			API: api, Clock: upstream.Speed(60),
			Rules: upstream.Usual(api, provider.Limits{Requests: 6, Input: 100_000}),
		})
		if err != nil {
			t.Fatal(err)
		}
		l, err := upstream.Listen(s)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		pace := sdk.Pace{Times: 60, Most: 2 * time.Second}
		waits := 0
		for _, result := range paced(t, b.SDK, pace, sdk.Call{Name: "a", URL: l.URL, Times: 8}) {
			waits += len(result.Waits)
			if !result.OK {
				t.Errorf("%+v", result)
			}
		}
		if l := s.Ledger(); l.Outcomes[upstream.Served] != 8 || l.Outcomes[upstream.Refused] != int64(waits) {
			t.Errorf("%v after %d waits, want 8 served, and a wait for each refusal", l.Outcomes, waits)
		}
	})
}
