package behind_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/upstream"
)

// slowestMax is how long any call may take while a leader dies: an election, and a machine
// that is busy.
const slowestMax = 10 * time.Second

// TestALeaderDiesBesideTheGateway: programs wait for an election at most. It starts the node
// again, and is no test that runs beside others.
func TestALeaderDiesBesideTheGateway(t *testing.T) {
	t.Run("G8_everybody_is_answered", func(t *testing.T) {
		p := stand(t, setting{
			deployment: "heard-dying", authority: ask(t), provider: upstream.Config{API: upstream.OpenAI},
		})
		programs := newProgram(t, p, upstream.OpenAI, "survivor")
		going, stop := context.WithCancel(t.Context())
		defer stop()
		calls, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		var joined sync.WaitGroup
		var all lives
		for worker := range 8 {
			joined.Go(func() {
				for i := 0; pause(going, 10*time.Millisecond); i++ {
					// Half of them are new here each time, so that the nodes are asked.
					name := "survivor"
					if worker%2 == 0 {
						name = fmt.Sprint("survivor-", worker, "-", i)
					}
					began := time.Now()
					got, err := programs.call(calls, prompt(fmt.Sprint("work ", worker, " ", i), ""), "X-Client-Id", name)
					all.note(began, got.status, err)
				}
			})
		}
		pause(t.Context(), 2*time.Second)
		leader, err := nodes.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		if err := nodes.Signal(leader, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		pause(t.Context(), 5*time.Second)
		stop()
		joined.Wait()
		if err := nodes.Start(leader); err != nil {
			t.Fatal(err)
		}
		if err := nodes.Healthy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := nodes.SameState(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.check(t, killed)
		if !until(t.Context(), func() bool { s := p.Stats(); return s.Charges.Leases == 0 && s.Held == 0 }) {
			t.Errorf("calls that have ended hold something: %+v", p.Stats())
		}
	})
}

// lives are what became of calls. It is safe for concurrent use.
type lives struct {
	mu       sync.Mutex
	statuses map[string]int
	slowest  time.Duration
	after    []time.Time
}

func (l *lives) note(began time.Time, status int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.statuses == nil {
		l.statuses = make(map[string]int)
	}
	word := fmt.Sprint(status)
	if err != nil {
		word = err.Error()
	}
	l.statuses[word]++
	l.slowest = max(l.slowest, time.Since(began))
	l.after = append(l.after, time.Now())
}

func (l *lives) check(t *testing.T, killed time.Time) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	before, after := 0, 0
	for _, at := range l.after {
		if at.Before(killed) {
			before++
		} else {
			after++
		}
	}
	t.Logf("%d calls before the kill and %d after it: %v, the slowest took %s", before, after, l.statuses, l.slowest)
	if before < 20 || after < 20 || l.slowest > slowestMax {
		t.Errorf("%d calls before the kill and %d after it, the slowest took %s", before, after, l.slowest)
	}
	if len(l.statuses) != 1 || l.statuses[fmt.Sprint(http.StatusOK)] == 0 {
		t.Errorf("%v, want all of them served", l.statuses)
	}
}
