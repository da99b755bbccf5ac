package progress

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if !Pause(ctx, 2*time.Second) || time.Since(began) != 2*time.Second {
			t.Errorf("cut short after %v", time.Since(began))
		}
		if Pause(ctx, 2*time.Second) || time.Since(began) != 3*time.Second {
			t.Errorf("went on until %v, although its context ended", time.Since(began))
		}
		if Pause(ctx, 0) {
			t.Error("a context that has ended is said to last")
		}
	})
}

func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		done, began := make(chan struct{}), time.Now()
		if Await(done, time.Second) || time.Since(began) != time.Second {
			t.Errorf("nothing came, and that was known after %v", time.Since(began))
		}
		close(done)
		if !Await(done, time.Second) || time.Since(began) != time.Second {
			t.Error("what is there is waited for")
		}
	})
}
