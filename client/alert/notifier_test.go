package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a sink that keeps what it got, and fails or hangs as told.
type recorder struct {
	repeat time.Duration

	mu    sync.Mutex
	fails int      // how many of the next deliveries fail, -1 for all
	hangs bool     // whether deliveries last until their context ends
	got   []string // "+id" a beginning, "-id" an end
	tries []time.Time
}

func (r *recorder) repeatEvery() time.Duration { return r.repeat }

func (r *recorder) Send(ctx context.Context, a Alert) error {
	r.mu.Lock()
	r.tries = append(r.tries, time.Now())
	hangs, fails := r.hangs, r.fails != 0
	r.fails = max(r.fails-1, min(r.fails, 0))
	if !hangs && !fails {
		r.got = append(r.got, map[bool]string{false: "+", true: "-"}[a.Resolved]+a.ID)
	}
	r.mu.Unlock()
	switch {
	case hangs:
		<-ctx.Done()
		return ctx.Err()
	case fails:
		return errors.New("the receiver is away")
	}
	return nil
}

func (r *recorder) set(fails int, hangs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails, r.hangs = fails, hangs
}

func (r *recorder) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.got, " ")
}

func (r *recorder) tried() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tries)
}

func begin(id string) Alert {
	return Alert{Kind: "QuorumLost", Name: "n1", ID: id, Severity: Critical, Text: "1 of 3 voters are within reach"}
}

func end(id string) Alert {
	a := begin(id)
	a.Resolved = true
	return a
}

// closeNow closes with a second to flush, and fails the test where want is not
// in the error.
func closeNow(t *testing.T, n *Notifier, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := n.Close(ctx)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("close: %v, want %q in it", err, want)
	}
}

func TestG8EachIncidentAlertsOnceAndResolvesOnce(t *testing.T) {
	t.Run("G8", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			one, two := &recorder{}, &recorder{}
			n := NewNotifier(one, two)
			for _, a := range []Alert{
				end("0"), begin("1"), begin("1"), end("1"), end("1"), begin("1"), begin("2"), end("2"), end("1"),
			} {
				n.Notify(a)
				synctest.Wait()
			}
			for _, r := range []*recorder{one, two} {
				if got, want := r.log(), "+1 -1 +1 +2 -2 -1"; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			if got, want := n.Counts(), (Counts{Delivered: 12}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			closeNow(t, n, "")
		})
	})
}

// TestG8OthersGoOn: an incident that somebody else goes on with is told of once, by
// whoever could, and the end of one that is taken over comes without its beginning.
func TestG8OthersGoOn(t *testing.T) {
	t.Parallel()
	release, adopt := func(n *Notifier) { n.Release(begin("1")) }, func(n *Notifier) { n.Adopt(begin("1")) }
	starts, ends := func(n *Notifier) { n.Notify(begin("1")) }, func(n *Notifier) { n.Notify(end("1")) }
	for name, row := range map[string]struct {
		fails int
		steps []func(*Notifier)
		want  string
	}{
		"G8_released_when_told":         {0, []func(*Notifier){starts, release, ends}, "+1"},
		"G8_released_before":            {3, []func(*Notifier){starts, release}, "+1"},
		"G8_released_before_and_over":   {3, []func(*Notifier){starts, release, ends}, "+1 -1"},
		"G8_released_and_back":          {3, []func(*Notifier){starts, release, starts, ends}, "+1 -1"},
		"G8_released_and_adopted":       {3, []func(*Notifier){starts, release, adopt, ends}, "+1 -1"},
		"G8_adopted":                    {0, []func(*Notifier){adopt, starts, ends, ends}, "-1"},
		"G8_nothing_is_there":           {0, []func(*Notifier){release, ends}, ""},
		"G8_what_is_over_is_not_parted": {3, []func(*Notifier){starts, ends, release}, "+1 -1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{fails: row.fails}
				n := NewNotifier(r)
				for _, step := range row.steps {
					step(n)
					synctest.Wait()
				}
				timer := time.NewTimer(5 * time.Minute)
				<-timer.C
				if got := r.log(); got != row.want {
					t.Errorf("got %q, want %q", got, row.want)
				}
				closeNow(t, n, "")
			})
		})
	}
	t.Run("G8_repeats", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{repeat: time.Minute}
			n := NewNotifier(r)
			n.Adopt(begin("1"))
			timer := time.NewTimer(150 * time.Second)
			<-timer.C
			n.Release(begin("1"))
			timer.Reset(5 * time.Minute)
			<-timer.C
			if got := r.log(); got != "+1 +1" {
				t.Errorf("got %q, want two repeats", got)
			}
			closeNow(t, n, "")
		})
	})
}

func TestASinkThatHangsBlocksNobody(t *testing.T) {
	t.Run("G8", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hung, well := &recorder{hangs: true}, &recorder{}
			n := New(Config{Sinks: []Sink{hung, well}, HeldMax: 8})
			began := time.Now()
			for i := range 1000 {
				n.Notify(begin(fmt.Sprint(i)))
				synctest.Wait()
				n.Notify(end(fmt.Sprint(i)))
				synctest.Wait()
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("notifying took %s, want none", took)
			}
			if got := strings.Count(well.log(), "-"); got != 1000 {
				t.Errorf("the other sink got %d ends, want 1000", got)
			}
			if got := n.Counts().Dropped; got != 992 {
				t.Errorf("dropped %d, want 992 of 1000: there is room for 8", got)
			}
			// It wakes up: what was kept arrives, each end behind its beginning.
			hung.set(0, false)
			<-time.After(time.Minute)
			synctest.Wait()
			if got, want := hung.log(), "+0 -0 +1 -1 +2 -2 +3 -3 +4 -4 +5 -5 +6 -6 +7 -7"; !sameSet(got, want) {
				t.Errorf("got %s, want %s in some order of incidents", got, want)
			}
			closeNow(t, n, "")
		})
	})
}

// sameSet compares two logs word by word without their order, and wants each
// end behind its beginning.
func sameSet(got, want string) bool {
	g, w := strings.Fields(got), strings.Fields(want)
	for i, word := range g {
		if id, isEnd := strings.CutPrefix(word, "-"); isEnd && !slices.Contains(g[:i], "+"+id) {
			return false
		}
	}
	slices.Sort(g)
	slices.Sort(w)
	return slices.Equal(g, w)
}

func TestABeginningIsTriedUntilItArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{fails: -1}
		var told []Failure
		n := New(Config{Sinks: []Sink{r}, OnFailure: func(f Failure) { told = append(told, f) }})
		n.Notify(begin("1"))
		<-time.After(2 * time.Hour)
		synctest.Wait()
		tries := r.tried()
		// Half the longest pause on average: 240 in two hours.
		if len(tries) < 150 || len(tries) > 400 {
			t.Errorf("%d tries in two hours, want about 240", len(tries))
		}
		for i := 1; i < len(tries); i++ {
			if pause := tries[i].Sub(tries[i-1]); pause <= 0 || pause > longestPause+time.Millisecond {
				t.Errorf("pause %d was %s, want at most %s", i, pause, longestPause)
			}
		}
		n.Notify(end("1"))
		r.set(0, false)
		<-time.After(longestPause)
		synctest.Wait()
		if got, want := r.log(), "+1 -1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if len(told) != 1 || told[0].GivenUp || told[0].Sink != "*alert.recorder" {
			t.Errorf("told of %+v, want the first failure", told)
		}
		closeNow(t, n, "")
	})
}

func TestAnEndIsGivenUpInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{fails: -1}
		var givenUp int
		n := New(Config{Sinks: []Sink{r}, OnFailure: func(f Failure) {
			if f.GivenUp {
				givenUp++
			}
		}})
		n.Notify(begin("1"))
		synctest.Wait()
		n.Notify(end("1"))
		<-time.After(time.Hour)
		synctest.Wait()
		if got, want := len(r.tried()), 1+triesAfterEnd; got != want {
			t.Errorf("%d tries, want %d", got, want)
		}
		if got, want := n.Counts(), (Counts{Failed: 1 + triesAfterEnd, Dropped: 1}); got != want || givenUp != 1 {
			t.Errorf("got %+v and %d given up, want %+v and 1", got, givenUp, want)
		}
		// The place is free again.
		r.set(0, false)
		n.Notify(begin("1"))
		synctest.Wait()
		if got, want := r.log(), "+1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		closeNow(t, n, "")
	})
}

func TestOpenIncidentsAreNeverLostForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		n := New(Config{Sinks: []Sink{r}, HeldMax: 2})
		for _, a := range []Alert{begin("1"), begin("2"), begin("3"), end("3"), end("1"), begin("4"), end("2"), end("4")} {
			n.Notify(a)
			synctest.Wait()
		}
		if got, want := r.log(), "+1 +2 -1 +4 -2 -4"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := n.Counts().Dropped; got != 1 {
			t.Errorf("dropped %d, want 1", got)
		}
		closeNow(t, n, "")
	})
}

func TestOpenIncidentsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{repeat: time.Minute}
		n := NewNotifier(r)
		n.Notify(begin("1"))
		<-time.After(3*time.Minute + time.Second)
		n.Notify(end("1"))
		<-time.After(time.Hour)
		synctest.Wait()
		if got, want := r.log(), "+1 +1 +1 +1 -1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := n.Counts().Delivered; got != 2 {
			t.Errorf("delivered %d, want 2: repeats don't count", got)
		}
		closeNow(t, n, "")
	})
}

func TestCloseFlushes(t *testing.T) {
	cases := []struct {
		name  string
		fails int
		hangs bool
		want  string // in the error
		log   string
	}{
		{"what_waits", 0, false, "", "+1 -1"},
		{"what_failed", 3, false, "", "+1 -1"},
		{"not_what_nobody_takes", -1, false, "1 not delivered", ""},
		{"not_what_hangs", 0, true, "1 not delivered", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{fails: c.fails, hangs: c.hangs}
				n := NewNotifier(r, &recorder{})
				n.Notify(begin("1"))
				n.Notify(end("1"))
				began := time.Now()
				closeNow(t, n, c.want)
				if took := time.Since(began); took > time.Second {
					t.Errorf("close took %s, its context 1s", took)
				}
				if got := r.log(); got != c.log {
					t.Errorf("got %q, want %q", got, c.log)
				}
				if got := n.Counts().Dropped; (got != 0) != (c.want != "") {
					t.Errorf("dropped %d", got)
				}
				n.Notify(begin("2"))
				closeNow(t, n, c.want)
			})
		})
	}
}

func TestCloseDoesNotWaitForAFunctionThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		n := NewNotifier(Func(func(Alert) { <-never }))
		n.Notify(begin("1"))
		began := time.Now()
		closeNow(t, n, "a sink does not return")
		if took, want := time.Since(began), time.Second+returnGrace; took != want {
			t.Errorf("close took %s, want %s", took, want)
		}
		close(never)
	})
}

func TestAnEndIsIdentifiedAsItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []Alert
		n := NewNotifier(Func(func(a Alert) { got = append(got, a) }))
		first := begin("1")
		first.Labels, first.Values = map[string]string{"cluster": "a"}, map[string]string{"reached": "1"}
		n.Notify(first)
		first.Labels["cluster"], first.Values["reached"] = "changed", "changed"
		last := end("1")
		last.Severity, last.Labels, last.Text = Info, map[string]string{"cluster": "b"}, "3 of 3"
		last.Values, last.Ended = map[string]string{"reached": "3"}, time.Now().Add(-time.Hour)
		n.Notify(last)
		closeNow(t, n, "")
		if len(got) != 2 {
			t.Fatalf("got %d alerts, want 2", len(got))
		}
		a, b := got[0], got[1]
		if a.Labels["cluster"] != "a" || a.Values["reached"] != "1" || a.Started.IsZero() || !a.Ended.IsZero() {
			t.Errorf("beginning: %+v", a)
		}
		if b.Labels["cluster"] != "a" || b.Severity != Critical || b.Text != "3 of 3" || b.Values["reached"] != "3" {
			t.Errorf("end: %+v", b)
		}
		if !b.Started.Equal(a.Started) || b.Ended.Before(b.Started) {
			t.Errorf("from %s to %s, begun at %s", b.Started, b.Ended, a.Started)
		}
	})
}
