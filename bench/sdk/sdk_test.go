package sdk_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/bench/sdk"
	"github.com/quorlease/quorlease/bench/sdk/sdktest"
	"github.com/quorlease/quorlease/bench/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// drive makes the calls, with waits a thousand times as short.
func drive(t *testing.T, name sdk.Name, calls ...sdk.Call) []sdk.Result {
	t.Helper()
	return paced(t, name, sdk.Pace{Times: 1000, Most: 20 * time.Millisecond}, calls...)
}

// paced makes the calls. A process that hangs is killed, and its test fails, long before
// all tests of the package have to be over.
func paced(t *testing.T, name sdk.Name, pace sdk.Pace, calls ...sdk.Call) []sdk.Result {
	t.Helper()
	i := sdktest.Installed(t, "../../.tools")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Minute, errors.New("it took 2 minutes"))
	defer cancel()
	results, err := i.Drive(ctx, name, pace, calls...)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func each(t *testing.T, test func(t *testing.T, b sdk.Behaviour)) {
	t.Helper()
	for _, b := range sdk.Behaviours() {
		t.Run(string(b.SDK), func(t *testing.T) { t.Parallel(); test(t, b) })
	}
}

// waited compares waits with what they should be.
func waited(t *testing.T, got []float64, want [][2]time.Duration) {
	t.Helper()
	ok := len(got) == len(want)
	for n := 0; ok && n < len(want); n++ {
		wait := time.Duration(got[n] * float64(time.Millisecond))
		ok = wait >= want[n][0] && wait <= want[n][1]
	}
	if !ok {
		t.Errorf("waited %v ms, want %v", got, want)
	}
}

func TestWhatEachRefusalComesTo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b sdk.Behaviour) {
		refusals := append(sdk.Gateway(), sdk.Edges()...)
		refuser := sdk.NewRefuser(refusals...)
		l, err := upstream.Listen(refuser)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var calls []sdk.Call
		for _, refusal := range refusals {
			calls = append(calls, sdk.Call{Name: refusal.Name, URL: l.URL + "/" + refusal.Name})
		}
		for i, result := range drive(t, b.SDK, calls...) {
			refusal := refusals[i]
			t.Run(refusal.Name, func(t *testing.T) {
				want := b.Expect(refusal)
				attempts := refuser.Attempts(refusal.Name)
				if len(attempts) != want.Attempts || result.OK || result.Status != refusal.Status || result.Version != b.Version {
					t.Errorf("%d attempts, %+v: want %d attempts of %s", len(attempts), result, want.Attempts, b.Version)
				}
				for n, attempt := range attempts {
					if attempt.Retries != strconv.Itoa(n) {
						t.Errorf("attempt %d says %q", n, attempt.Retries)
					}
				}
				waited(t, result.Waits, want.Waits)
				if class := b.Class(refusal.Status); result.Class != class {
					t.Errorf("its user got %s, want %s", result.Class, class)
				}
			})
		}
	})
}

// What ends a storm at once, for every SDK, is the word not to retry, whatever the
// status and the hint; the hint of a minute alone is not.
func TestTheWordNotToRetryIsObeyed(t *testing.T) {
	t.Parallel()
	for _, b := range sdk.Behaviours() {
		for _, refusal := range sdk.Gateway()[:2] {
			if n := b.Expect(refusal).Attempts; n != 1 {
				t.Errorf("%s tries %d times at %s", b.SDK, n, refusal.Name)
			}
		}
		if n := b.Expect(sdk.Edges()[0]).Attempts; n != 3 {
			t.Errorf("%s tries %d times at a hint of a minute alone", b.SDK, n)
		}
	}
}
