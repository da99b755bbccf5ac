package batch_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/batch"
)

// sized returns an acquire whose encoding is about bytes long.
func sized(bytes int) *logv1.Operation {
	return &logv1.Operation{Kind: &logv1.Operation_Acquire{
		Acquire: &logv1.Acquire{Client: strings.Repeat("c", bytes)},
	}}
}

func limits(bytes int) *logv1.Operation {
	return &logv1.Operation{Kind: &logv1.Operation_ApplyLimits{
		ApplyLimits: &logv1.ApplyLimits{Author: strings.Repeat("a", bytes)},
	}}
}

func size(op *logv1.Operation) int {
	n, _ := batch.Size(op)
	return n
}

func TestSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		op   *logv1.Operation
		want bool
	}{
		{"empty", &logv1.Operation{}, true},
		{"acquire that fits", sized(batch.MaxBytes - 100), true},
		{"acquire too large", sized(batch.MaxBytes), false},
		{"limits that fit", limits(batch.MaxLimitsBytes - 100), true},
		{"limits too large", limits(batch.MaxLimitsBytes), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := batch.Size(c.op)
			var tooLarge *batch.TooLargeError
			if (err == nil) != c.want || err != nil && !errors.As(err, &tooLarge) {
				t.Fatalf("got %v, want fits=%t", err, c.want)
			}
		})
	}
}

// Whatever comes in, an entry stays within its bounds, keeps the order, loses
// nothing, and a large change of limits travels alone.
func TestR28EntriesAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ops := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *logv1.Operation {
			if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
				return limits(rapid.IntRange(0, batch.MaxLimitsBytes-100).Draw(t, "limits"))
			}
			return sized(rapid.IntRange(0, 4000).Draw(t, "bytes"))
		}), 0, 1200).Draw(t, "operations")
		next := 0
		for next < len(ops) {
			b := &batch.Batch[int]{}
			for next < len(ops) && b.Add(ops[next], size(ops[next]), next) {
				next++
			}
			if b.Len() == 0 {
				t.Fatalf("operation %d was never taken", next)
			}
			entry := &logv1.Entry{Operations: b.Operations()}
			if size := proto.Size(entry); size > b.Bytes() {
				t.Fatalf("entry of %d bytes, counted %d", size, b.Bytes())
			}
			if b.Len() > batch.MaxOperations || b.Len() > 1 && b.Bytes() > batch.MaxBytes {
				t.Fatalf("entry of %d operations, %d bytes", b.Len(), b.Bytes())
			}
			for i, w := range b.Waiters() {
				if want := next - b.Len() + i; w != want {
					t.Fatalf("waiter %d at position %d, want %d", w, i, want)
				}
			}
		}
	})
}
