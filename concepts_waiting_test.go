package quorlease_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// line is the example of docs/concepts/waiting.md: a limit of two a second with a
// burst of two, classes live and batch, and a bucket that is empty at 0 s.
type line struct {
	t      *testing.T
	queue  *queue.Queue
	shape  *bucket.Shape
	bucket bucket.Bucket
	rows   []string
	waits  map[string][][2]float64
	count  map[string]int
}

func newLine(t *testing.T) *line {
	t.Helper()
	shape, err := bucket.NewShape(bucket.Spec{
		Amount: 2, Interval: time.Second, Target: bucket.Whole, Burst: 2, Classes: make([]bucket.ClassSpec, 2),
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &line{
		t: t, shape: shape, bucket: shape.Empty(0), queue: queue.New(queue.Config{}),
		waits: make(map[string][][2]float64), count: make(map[string]int),
	}
	l.queue.Configure(0, map[string]*queue.Terms{"provider": {
		Classes: []string{"live", "batch"}, Max: 100,
		Dimensions: []queue.Dimension{{
			Name: "requests", Tokens: 2, Per: time.Second, Parts: make([]queue.Part, 2),
		}},
	}})
	return l
}

func (l *line) ask(now time.Duration, class, client string, n int) {
	for range n {
		w := &queue.Waiter{
			Place: queue.Place{Limit: "provider"}, Class: class, Client: client, Sole: true,
			Costs: []queue.Cost{{Dimension: "requests", Tokens: 1}}, Arrived: now, Until: queue.Never,
		}
		if status, ok := l.queue.Push(now, w, 0); !ok {
			l.t.Fatalf("no room: %+v", status)
		}
	}
	l.note(now, client, n)
}

func (l *line) note(now time.Duration, client string, n int) {
	points := append(l.waits[client], [2]float64{now.Seconds(), float64(l.count[client])})
	l.count[client] += n
	l.waits[client] = append(points, [2]float64{now.Seconds(), float64(l.count[client])})
}

// serve lets the heads that are due have what is there.
func (l *line) serve(now time.Duration) {
	l.bucket.Advance(l.shape, bucket.Instant(now))
	for heads := l.queue.Next(now); len(heads) > 0; heads = l.queue.Next(now) {
		for _, w := range heads {
			class := map[string]int{"live": 0, "batch": 1}[w.Class]
			keep := l.queue.Keep(now, w.Place, w.Class, "requests")
			if _, ok := l.bucket.TakeLeaving(l.shape, class, 1, keep); !ok {
				l.queue.Denied(now, w, 10*time.Millisecond)
				continue
			}
			l.queue.Granted(now, w)
			l.note(now, w.Client, -1)
			l.rows = append(l.rows, fmt.Sprintf("| %.1f s | %s | %s |", now.Seconds(), w.Client, w.Class))
		}
	}
}

// TestConceptsWaiting: who is served when, with the numbers and the picture of the
// page.
func TestConceptsWaiting(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	for now := time.Duration(0); now <= 5*time.Second; now += 10 * time.Millisecond {
		if now == 0 {
			l.ask(now, "batch", "backfill", 6)
		}
		if now == 200*time.Millisecond {
			l.ask(now, "batch", "report", 2)
		}
		if now == 1200*time.Millisecond {
			l.ask(now, "live", "chat", 1)
		}
		l.serve(now)
	}
	page, err := os.ReadFile(filepath.Join("docs", "concepts", "waiting.md"))
	if err != nil {
		t.Fatal(err)
	}
	if table := strings.Join(l.rows, "\n") + "\n"; !strings.Contains(string(page), table) {
		t.Errorf("docs/concepts/waiting.md does not have the rows\n%s", table)
	}
	p := plot.Plot{YLabel: "waiting", XLabel: "seconds", XMax: 5}
	for at := range 6 {
		p.XTicks = append(p.XTicks, plot.Tick{At: float64(at), Text: fmt.Sprint(at)})
	}
	for _, s := range []plot.Series{
		{Name: "backfill", Class: "before"}, {Name: "report", Class: "echo"}, {Name: "chat (live)", Class: "quorlease"},
	} {
		client, _, _ := strings.Cut(s.Name, " ")
		s.Points = append(l.waits[client], [2]float64{5, 0})
		p.Series = append(p.Series, s)
	}
	var drawn bytes.Buffer
	if err := plot.Picture(&drawn, "How many of three clients wait", p.Draw()); err != nil {
		t.Fatal(err)
	}
	picture(t, filepath.Join("docs", "concepts", "waiting.svg"), drawn.Bytes())
}
