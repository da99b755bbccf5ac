package bound

import (
	"testing"
	"time"
)

func TestBounds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		value time.Duration
		want  string
	}{
		{0, "pause: 0s, 1s to 1m0s"},
		{time.Second, ""},
		{time.Minute, ""},
		{time.Hour, "pause: 1h0m0s, 1s to 1m0s"},
	} {
		got := ""
		if err := Within("pause", row.value, time.Second, time.Minute); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.value, got, row.want)
		}
	}
	for value, want := range map[int]int{0: 7, 3: 3, -1: -1} {
		field := value
		if Default(&field, 7); field != want {
			t.Errorf("%d became %d, want %d", value, field, want)
		}
	}
}
