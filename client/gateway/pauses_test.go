package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

// TestPauses: between two tries of what the provider gave no hint for.
func TestPauses(t *testing.T) {
	hintless := func(*http.Request) *http.Response {
		return says(http.StatusTooManyRequests, `{"error":{"type":"requests","code":"rate_limit_exceeded"}}`)
	}
	for name, drawn := range map[string]func(n int64) int64{
		"S2-20_the_shortest": func(int64) int64 { return 0 },
		"S2-20_the_longest":  func(n int64) int64 { return n - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			change := func(c *gateway.Config) {
				c.Pauses = provider.Schedule{
					Step: 500 * time.Millisecond, Least: 150 * time.Millisecond, Most: 900 * time.Millisecond,
				}
				c.Draw, c.Circuits = drawn, circuit.Config{CallThrottles: -1, FractionBP: -1}
			}
			bubble(t, change, func(t *testing.T, w *world) {
				w.answer = hintless
				got := w.ask(t.Context(), prompt("hi"))
				tries := w.all()
				if len(tries) != 3 || got.Code != http.StatusTooManyRequests {
					t.Fatalf("%d after %d tries: %s", got.Code, len(tries), got.Body)
				}
				extra := 150*time.Millisecond + time.Duration(drawn(int64(750*time.Millisecond)))
				for n, step := range []time.Duration{500 * time.Millisecond, time.Second} {
					// Whoever asks again is charged anew, which takes a moment.
					if gap := tries[n+1].at.Sub(tries[n].at); gap < step+extra || gap > step+extra+50*time.Millisecond {
						t.Errorf("%s after try %d, want %s", gap, n, step+extra)
					}
				}
			})
		})
	}
	t.Run("S2-10_a_fixed_one_is_refused", func(t *testing.T) {
		_, err := gateway.New(gateway.Config{Pauses: provider.Schedule{Step: time.Second}})
		if want := "gateway pauses: most 0s: must be more than least"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	})
}
