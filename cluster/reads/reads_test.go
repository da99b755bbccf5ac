package reads_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/reads"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestR6Confirm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		index, term, asked := uint64(7), uint64(3), 0
		gate := make(chan error)
		r := reads.New(func() (uint64, uint64) { return index, term }, func(in uint64) error {
			if in != 3 {
				t.Errorf("asked about term %d, want that of the index", in)
			}
			asked++
			return <-gate
		})
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { r.Run(stop) })
		type answer struct {
			index uint64
			err   error
		}
		answers := make(chan answer, 10)
		read := func(ctx context.Context) {
			running.Go(func() {
				i, err := r.Confirm(ctx)
				answers <- answer{i, err}
			})
		}
		// One question for all that came before it was asked; those that come
		// while it is asked need another, or they could see less than was answered.
		read(t.Context())
		synctest.Wait()
		for range 3 {
			read(t.Context())
		}
		hasty, cancel := context.WithCancel(t.Context())
		read(hasty)
		synctest.Wait()
		cancel()
		if a := <-answers; !errors.Is(a.err, context.Canceled) {
			t.Errorf("got %+v", a)
		}
		index = 9
		gate <- nil
		if a := <-answers; a.err != nil || a.index != 7 {
			t.Errorf("the first got %+v, want what was applied before it asked", a)
		}
		gate <- nil
		for range 3 {
			if a := <-answers; a.err != nil || a.index != 9 {
				t.Errorf("got %+v, want 9", a)
			}
		}
		if asked != 2 {
			t.Errorf("asked %d times", asked)
		}
		read(t.Context())
		gate <- errors.New("deposed")
		if a := <-answers; !errors.Is(a.err, outcome.ErrNotLeader) {
			t.Errorf("got %+v", a)
		}
		term = 0
		read(t.Context())
		if a := <-answers; !errors.Is(a.err, outcome.ErrNotLeader) || asked != 3 {
			t.Errorf("got %+v, asked %d times", a, asked)
		}
		close(stop)
		synctest.Wait()
		read(t.Context())
		if a := <-answers; !errors.Is(a.err, outcome.ErrClosed) {
			t.Errorf("got %+v", a)
		}
		running.Wait()
	})
}
