package quorlease_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

var redraw = flag.Bool("redraw", false, "write the pictures of docs/concepts anew")

// TestConceptsFeedback has the example of docs/concepts/feedback.md: one 429 at 10 s that
// asks to wait 15 s, three limits of 100 a second that come back in three ways, and
// callers who take all they get. The numbers are those of the page, and the picture is
// drawn from them.
func TestConceptsFeedback(t *testing.T) {
	t.Parallel()
	limit := func(change func(*logv1.Limit)) *logv1.Limit {
		one := fsmtest.Limit("l", fsmtest.Dimension(t, "requests", "100/1s", 100))
		change(one)
		return one
	}
	ways := []struct {
		name, class string
		limit       *logv1.Limit
		granted     []int
	}{
		{name: "at once", class: "before", limit: limit(func(*logv1.Limit) {})},
		{name: "ramp 60s", class: "quorlease", limit: limit(func(l *logv1.Limit) { l.Ramp = int64(time.Minute) })},
		{name: "adaptive", class: "echo", limit: limit(func(l *logv1.Limit) {
			l.Adaptive = &logv1.Adaptive{Decrease: 5_000, Step: 1_000, Interval: int64(10 * time.Second), Floor: 2_000}
		})},
	}
	for i := range ways {
		ways[i].granted = comingBack(t, ways[i].limit, 100)
	}
	page, err := os.ReadFile(filepath.Join("docs", "concepts", "feedback.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, second := range []int{9, 10, 24, 25, 26, 28, 34, 35, 55, 84, 85} {
		row := fmt.Sprintf("| %d s |", second)
		for _, way := range ways {
			row += fmt.Sprintf(" %d |", way.granted[second])
		}
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/concepts/feedback.md does not have the row %s", row)
		}
	}
	p := plot.Plot{
		YLabel: "granted in a second", XLabel: "seconds", XMax: 100,
		Marks: []plot.Tick{{At: 10, Text: "429, wait 15 s"}, {At: 25, Text: "open again"}},
	}
	for at := 0.0; at <= 100; at += 20 {
		p.XTicks = append(p.XTicks, plot.Tick{At: at, Text: fmt.Sprint(at)})
	}
	for _, way := range ways {
		line := plot.Series{Name: way.name, Class: way.class}
		// Not the second of the first burst.
		for second, n := range way.granted[1:] {
			line.Points = append(line.Points, [2]float64{float64(second + 1), float64(n)})
		}
		p.Series = append(p.Series, line)
	}
	var drawn bytes.Buffer
	if err := plot.Picture(&drawn, "What is granted after a provider's 429, in three ways", p.Draw()); err != nil {
		t.Fatal(err)
	}
	picture(t, filepath.Join("docs", "concepts", "feedback.svg"), drawn.Bytes())
}

// comingBack is what is granted in each second, to callers who ask all the time.
func comingBack(t *testing.T, limit *logv1.Limit, seconds int) []int {
	t.Helper()
	d := fsmtest.New(t)
	d.At(0, fsmtest.Apply(limit))
	ask := fsmtest.Operation(&logv1.Acquire{Charges: []*logv1.Charge{fsmtest.Charge("l", "", "requests", 1)}})
	granted := make([]int, seconds)
	for at := time.Duration(0); at < time.Duration(seconds)*time.Second; at += 10 * time.Millisecond {
		if at == 10*time.Second {
			d.At(at, fsmtest.Operation(&logv1.Feedback{Signals: []*logv1.Signal{{
				Limit: "l", Kind: logv1.Signal_KIND_THROTTLED, Wait: int64(15 * time.Second),
			}}}))
		}
		for d.Acquire(at, ask).GetGranted() {
			granted[at/time.Second]++
		}
	}
	return granted
}

func picture(t *testing.T, name string, drawn []byte) {
	t.Helper()
	if *redraw {
		if err := os.WriteFile(name, drawn, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if kept, err := os.ReadFile(name); err != nil || !bytes.Equal(kept, drawn) {
		t.Errorf("%s is not what is drawn now (%v): go test . -run %s -redraw", name, err, t.Name())
	}
}
