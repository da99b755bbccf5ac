package alert

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSinkThatPanics: it ends neither the program nor the alerts of others, and is
// tried again.
func TestSinkThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		good := &recorder{}
		var failure atomic.Pointer[Failure]
		n := New(Config{
			Sinks: []Sink{
				Func(func(a Alert) {
					if calls.Add(1) == 1 {
						panic("no such channel")
					}
				}),
				good,
			},
			OnFailure: func(f Failure) { failure.Store(&f) },
		})
		n.Notify(begin("a"))
		<-time.After(time.Second)
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if calls.Load() != 2 || good.log() != "+a" {
			t.Errorf("called %d times, the other one got %q", calls.Load(), good.log())
		}
		if f := failure.Load(); f == nil || f.GivenUp || !strings.Contains(f.Err.Error(), "no such channel") {
			t.Errorf("failure %+v", f)
		}
	})
}
