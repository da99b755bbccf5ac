package lineup_test

import (
	"errors"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/lineup"
)

type owner struct{}

func (owner) Answer(*logv1.Result, error) {}

func items(t *testing.T, d *door.Door, n int) []*door.Item {
	t.Helper()
	list := make([]*door.Item, n)
	for i := range list {
		list[i] = &door.Item{
			Operation: &logv1.Operation{}, Size: 10, Deadline: time.Now().Add(time.Hour), Owner: owner{},
		}
		if err := d.Admit(list[i]); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// TestT25OnlyALeaderHasALine: nothing gets in without a leadership, and nothing of one
// is there in the next.
func TestT25OnlyALeaderHasALine(t *testing.T) {
	t.Parallel()
	d := door.New(100, 100)
	l := lineup.New(d, 100)
	three := items(t, d, 3)
	if l.Add(three...) || l.Term() != 0 {
		t.Fatal("let in without a leadership")
	}
	l.Serve(7)
	if !l.Add(three...) || l.Term() != 7 {
		t.Fatal("not let in")
	}
	if left := l.Drop(); len(left) != 3 || l.Add(three...) {
		t.Fatalf("%d of 3 were left, or one got in after the end", len(left))
	}
	l.Serve(8)
	if b, term := l.Next(); b.Len() != 0 || term != 8 {
		t.Fatalf("%d in the next leadership, of term %d", b.Len(), term)
	}
}

// TestAnEntryIsTakenFromTheFront, as many as fit, without those that were answered.
func TestAnEntryIsTakenFromTheFront(t *testing.T) {
	t.Parallel()
	d := door.New(2000, 100)
	l := lineup.New(d, 2000)
	l.Serve(1)
	all := items(t, d, batch.MaxOperations+3)
	l.Add(all...)
	d.Answer(all[0], nil, errors.New("gone"))
	first, _ := l.Next()
	second, _ := l.Next()
	if first.Len() != batch.MaxOperations || second.Len() != 2 || first.Waiters()[0] != all[1] {
		t.Fatalf("%d and %d operations, want %d and 2", first.Len(), second.Len(), batch.MaxOperations)
	}
}

// TestTheAnsweredAreForgotten when more pile up than may.
func TestTheAnsweredAreForgotten(t *testing.T) {
	t.Parallel()
	d := door.New(100, 100)
	l := lineup.New(d, 5)
	l.Serve(1)
	old := items(t, d, 5)
	l.Add(old...)
	for _, it := range old {
		d.Answer(it, nil, errors.New("gone"))
	}
	l.Add(items(t, d, 1)...)
	if left := l.Drop(); len(left) != 1 {
		t.Fatalf("%d are kept, want 1", len(left))
	}
}
