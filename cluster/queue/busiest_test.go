package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestBusiest: of each limit the key where most wait, of equals the first, and of so
// many limits only.
func TestBusiest(t *testing.T) {
	t.Parallel()
	q, terms := New(Config{}), map[string]*Terms{}
	for _, limit := range []string{"a", "b", "c"} {
		terms[limit] = &Terms{Max: 100}
	}
	q.Configure(0, terms)
	if got := q.Busiest(0, 10); got != nil {
		t.Errorf("%+v where nobody waits", got)
	}
	for _, one := range []struct {
		limit, key string
		count      int
	}{{"b", "eu", 1}, {"b", "us", 2}, {"a", "y", 1}, {"a", "x", 1}, {"c", "", 3}} {
		for i := range one.count {
			w := waiter(fmt.Sprint(i), 2)
			w.Place = Place{Limit: one.limit, Key: one.key}
			push(t, q, time.Second, w)
		}
	}
	got := q.Busiest(3*time.Second, 2)
	want := []Place{{"a", "x"}, {"b", "us"}}
	if len(got) != 2 || !slices.EqualFunc(got, want, func(s ClassState, p Place) bool { return s.Place == p }) {
		t.Fatalf("%+v, want %v", got, want)
	}
	if got[1].Waiting != 2 || got[1].Oldest != 2*time.Second || got[1].Tokens[0].Tokens != 4 {
		t.Errorf("%+v, want what waits there", got[1])
	}
}
