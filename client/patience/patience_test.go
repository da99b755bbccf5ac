package patience

import (
	"testing"
	"time"
)

func TestLongest(t *testing.T) {
	began := time.Date(2026, 10, 22, 8, 30, 0, 0, time.UTC)
	var l Longest
	for _, step := range []struct {
		at, note, want time.Duration
	}{
		{0, 0, 0},
		{0, time.Second, time.Second},
		{time.Second, 200 * time.Millisecond, time.Second},
		{11 * time.Second, 300 * time.Millisecond, time.Second},
		{15 * time.Second, 200 * time.Millisecond, time.Second},
		{22 * time.Second, 200 * time.Millisecond, 300 * time.Millisecond},
		{33 * time.Second, 0, 200 * time.Millisecond},
		{60 * time.Second, 0, 0},
		{59 * time.Second, 50 * time.Millisecond, 50 * time.Millisecond},
	} {
		at := began.Add(step.at)
		if step.note > 0 {
			l.Note(at, step.note)
		}
		if got := l.Of(at); got != step.want {
			t.Errorf("after %s: %s, want %s", step.at, got, step.want)
		}
	}
}
