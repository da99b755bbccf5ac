package progress_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/quorlease/quorlease/cluster/progress"
)

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p progress.Index
		p.Advance(5)
		p.Advance(3)
		if got := p.Last(); got != 5 {
			t.Fatalf("at %d, want 5: it never goes back", got)
		}
		if err := p.Wait(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		var waiting sync.WaitGroup
		reached := make(map[uint64]bool)
		var mu sync.Mutex
		for _, index := range []uint64{6, 7, 9} {
			waiting.Go(func() {
				if err := p.Wait(t.Context(), index); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				reached[index] = true
			})
		}
		synctest.Wait()
		p.Advance(7)
		synctest.Wait()
		mu.Lock()
		if len(reached) != 2 || reached[9] {
			t.Errorf("reached %v", reached)
		}
		mu.Unlock()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Wait(gone, 8); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		p.Advance(9)
		waiting.Wait()
	})
}
