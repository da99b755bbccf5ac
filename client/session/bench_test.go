package session_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkDo is what a session adds to an operation, per operation: 128 callers,
// and a node that grants at once. Of its allocations the node, which is in the same
// process, makes eight or nine, the decoder three for the answer, and the session
// one, for the timeout; what a message costs is shared by all that is in it.
func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 128} {
		name := map[int]string{1: "callers=1", 128: "callers=128"}[callers]
		b.Run(name, func(b *testing.B) {
			s := begin(b, scripted(b, echo))
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			defer cancel()
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var joined sync.WaitGroup
			for range callers {
				joined.Go(func() {
					item := acquire("free")
					for left.Add(-1) >= 0 {
						if _, err := s.Do(ctx, item); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			joined.Wait()
		})
	}
}
