package room

import (
	"errors"
	"testing"
)

// TestRooms: what was taken is given back by the last user, and nobody takes what is not there.
func TestRooms(t *testing.T) {
	t.Parallel()
	rooms := New(100, 60)
	a, b, c := rooms.Open("a"), rooms.Open("a"), rooms.Open("c")
	for _, step := range []struct {
		do   func() error
		want error
		held int64
	}{
		{func() error { return a.Grow(50) }, nil, 50},
		{func() error { return a.Grow(40) }, nil, 50},
		{func() error { return b.Grow(11) }, ErrShare, 50},
		{func() error { return c.Grow(51) }, ErrFull, 50},
		{func() error { return c.Grow(50) }, nil, 100},
		{func() error { a.Enter(); a.Leave(); return nil }, nil, 100},
		{func() error { a.Leave(); return nil }, nil, 50},
		{func() error { a.Enter(); return nil }, nil, 100},
		{func() error { rooms.Bound(200, 10); return b.Grow(1) }, ErrShare, 100},
		{func() error { a.Leave(); c.Leave(); b.Leave(); return nil }, nil, 0},
	} {
		if err := step.do(); !errors.Is(err, step.want) || rooms.Held() != step.held {
			t.Errorf("%v with %d held, want %v with %d", err, rooms.Held(), step.want, step.held)
		}
	}
	if n := len(rooms.byClient); n != 0 {
		t.Errorf("%d clients are remembered that hold nothing", n)
	}
}
