package supervise

import (
	"bytes"
	"strings"
	"sync"
	"testing"
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
			w := &lineWriter{prefix: "n1 | ", out: &out, mu: &sync.Mutex{}}
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
