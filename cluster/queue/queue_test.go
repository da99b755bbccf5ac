package queue

import (
	"fmt"
	"testing"
	"time"
)

const ms = time.Millisecond

// gpt is where most tests wait.
var gpt = Place{Limit: "gpt"}

// open is a queue in which anybody may wait at gpt.
func open(t Terms) *Queue {
	q := New(Config{})
	if t.Max == 0 {
		t.Max = 1 << 40
	}
	q.Configure(0, map[string]*Terms{"gpt": &t})
	return q
}

func always(*Waiter) bool { return true }

// waiter asks for tokens.
func waiter(client string, tokens int64) *Waiter {
	return &Waiter{
		Place: gpt, Client: client, Costs: []Cost{{"tokens", tokens}}, Sole: true, Until: Never,
		Owner: fmt.Sprintf("%s:%d", client, tokens),
	}
}

func push(t *testing.T, q *Queue, now time.Duration, w *Waiter) *Waiter {
	t.Helper()
	w.Arrived = now
	if _, ok := q.Push(now, w, 0); !ok {
		t.Fatalf("no room for %v", w.Owner)
	}
	return w
}

func TestQueueFlow(t *testing.T) {
	t.Parallel()
	q := open(Terms{})
	a1, a2, b1 := waiter("a", 1), waiter("a", 1), waiter("b", 1)
	a1.Arrived = 0
	if s, ok := q.Push(0, a1, 10*ms); !ok || s.Position != 1 || s.ETA != 10*ms {
		t.Fatalf("%+v, %t", s, ok)
	}
	push(t, q, 0, a2)
	push(t, q, 0, b1)
	if at, ok := q.NextDue(); !ok || at != 10*ms {
		t.Errorf("due at %v, %t", at, ok)
	}
	if got := q.Next(9 * ms); got != nil {
		t.Errorf("%d heads before they are due", len(got))
	}
	heads := q.Next(10 * ms)
	if len(heads) != 1 || heads[0] != a1 {
		t.Fatalf("heads %v", heads)
	}
	if more := q.More(10*ms, a1, always); more != b1 {
		t.Errorf("after a comes %v", more)
	}
	if more := q.More(10*ms, b1, always); more != a2 {
		t.Errorf("after b comes %v", more)
	}
	q.Granted(11*ms, a1)
	q.Denied(11*ms, b1, 5*ms)
	q.Denied(11*ms, a2, 7*ms)
	if heads := q.Next(16 * ms); len(heads) != 1 || heads[0] != b1 {
		t.Fatalf("heads %v", heads)
	}
	q.Granted(16*ms, b1)
	if heads := q.Next(16 * ms); len(heads) != 1 || heads[0] != a2 {
		t.Fatalf("heads %v", heads)
	}
	q.Granted(16*ms, a2)
	if q.Len() != 0 || len(q.places) != 0 || len(q.clients) != 0 || q.due.len() != 0 || q.expiry.len() != 0 {
		t.Errorf("something is left: %+v", q)
	}
}

// TestDrainedForGood: what becomes of those who flew when the queue was emptied says
// nothing about it any more, also of one who left meanwhile.
func TestDrainedForGood(t *testing.T) {
	t.Parallel()
	for name, land := range map[string]func(q *Queue, w *Waiter){
		"granted": func(q *Queue, w *Waiter) { q.Granted(5*ms, w) },
		"denied":  func(q *Queue, w *Waiter) { q.Denied(5*ms, w, ms) },
	} {
		q := open(Terms{})
		left, stays := push(t, q, 0, waiter("a", 1)), push(t, q, 0, waiter("a", 1))
		push(t, q, 0, waiter("b", 1))
		q.Next(0)
		for range 2 {
			if q.More(0, left, always) == nil {
				t.Fatal("not everybody flies")
			}
		}
		if q.Cancel(ms, left) {
			t.Errorf("%s: who flies was taken out", name)
		}
		if n := len(q.Drain()); n != 2 {
			t.Errorf("%s: %d drained, want the two who are there", name, n)
		}
		land(q, left)
		land(q, stays)
		if heads := q.Next(time.Hour); len(heads) != 0 || q.Len() != 0 || q.due.len() != 0 {
			t.Errorf("%s: %d heads of %d, %d lanes due, want none", name, len(heads), q.Len(), q.due.len())
		}
	}
}
