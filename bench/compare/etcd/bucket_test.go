package etcd

import (
	"testing"

	"github.com/quorlease/quorlease/bench/compare/peer"
)

func TestTaken(t *testing.T) {
	t.Parallel()
	b := peer.Bucket{Burst: 10, PerSecond: 2}
	for name, row := range map[string]struct {
		before  state
		now     int64
		after   state
		granted bool
	}{
		"full":               {state{10 * token, 0}, 0, state{9 * token, 0}, true},
		"empty":              {state{token - 1, 5}, 5, state{token - 1, 5}, false},
		"refilled":           {state{0, 0}, token / 2, state{0, token / 2}, true},
		"not quite":          {state{0, 0}, token/2 - 1, state{token - 2, token/2 - 1}, false},
		"never above burst":  {state{9 * token, 0}, 1 << 60, state{9 * token, 1 << 60}, true},
		"a clock steps back": {state{5 * token, 100}, 7, state{4 * token, 100}, true},
	} {
		if after, granted := taken(&b, row.before, row.now); after != row.after || granted != row.granted {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, after, granted, row.after, row.granted)
		}
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	want := state{12345678901, -7}
	if got, err := decode(want.encode()); got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := decode([]byte("short")); err == nil {
		t.Error("no bucket: no error")
	}
}
