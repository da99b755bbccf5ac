package supervise

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestLineWriter(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", longestLine)
	for _, row := range []struct {
		name   string
		writes []string
		want   string
	}{
		{"whole", []string{"one\n"}, "n1 | one\n"},
		{"pieces", []string{"o", "n", "e\ntw", "o\n"}, "n1 | one\nn1 | two\n"},
		{"two at once", []string{"one\ntwo\n"}, "n1 | one\nn1 | two\n"},
		{"unfinished", []string{"one"}, "n1 | one\n"},
		{"too long", []string{long + "y\n"}, "n1 | " + long + "y\n"},
		{"much too long", []string{long, "y\n"}, "n1 | " + long + "\nn1 | y\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			w := &lineWriter{prefix: "n1 | ", sink: &sink{out: &out}}
			for _, s := range row.writes {
				if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
					t.Fatalf("Write = %d, %v, want %d, nil", n, err, len(s))
				}
			}
			w.last()
			if out.String() != row.want {
				t.Errorf("wrote %q: got %.200q, want %.200q", row.writes, out.String(), row.want)
			}
		})
	}
}

func TestSinkHoldsSimilarLinesBack(t *testing.T) {
	t.Parallel()
	s := &sink{similar: 5 * time.Second, kinds: map[string]*kind{}}
	began := time.Unix(0, 0)
	for _, row := range []struct {
		line     string
		after    time.Duration
		wantHeld int
		wantNow  bool
	}{
		{"dial 1", 0, 0, true},
		{"dial 22", time.Second, 0, false},
		{"other 1", time.Second, 0, true},
		{"dial 3", 4 * time.Second, 0, false},
		{"dial 4", 5 * time.Second, 2, true},
		{"dial 5", 9 * time.Second, 0, false},
		{"dial 6", 20 * time.Second, 1, true},
	} {
		held, now := s.held(withoutNumbers(row.line), began.Add(row.after))
		if held != row.wantHeld || now != row.wantNow {
			t.Errorf("%q after %s: held %d, now %t, want %d, %t",
				row.line, row.after, held, now, row.wantHeld, row.wantNow)
		}
	}
	for i := range 3 * mostKinds {
		s.held(strings.Repeat("x", i), began)
	}
	if len(s.kinds) > mostKinds {
		t.Errorf("%d kinds are remembered, want at most %d", len(s.kinds), mostKinds)
	}
}
