// Package batch packs operations into log entries.
//
// It is pure: it starts no goroutine, takes no lock and reads no clock. The
// caller keeps the queue; a Batch is one entry in the making.
package batch

import (
	"fmt"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Bounds of one entry. A small entry keeps the time between two commits short,
// and MaxAppendEntries of them together stay far below what a peer accepts in
// one message (R28).
const (
	// MaxOperations bounds the operations of one entry.
	MaxOperations = 512
	// MaxBytes bounds the encoded operations of one entry.
	MaxBytes = 64 << 10
	// MaxLimitsBytes bounds a change of limits, which travels alone.
	MaxLimitsBytes = 512 << 10
)

// perOperation is what an operation costs beside its own bytes: the field's
// tag and a length of up to three bytes.
const perOperation = 4

// TooLargeError says that an operation fits no entry.
type TooLargeError struct {
	// Bytes is the operation's encoded size, Max what it may have.
	Bytes, Max int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("operation of %d bytes is larger than %d", e.Bytes, e.Max)
}

// Size is what op takes in an entry, in bytes. It reports, as a *TooLargeError,
// that op fits no entry at all.
func Size(op *logv1.Operation) (int, error) {
	size, limit := op.SizeVT()+perOperation, MaxBytes
	if op.GetApplyLimits() != nil {
		limit = MaxLimitsBytes
	}
	if size > limit {
		return size, &TooLargeError{Bytes: size, Max: limit}
	}
	return size, nil
}

// Batch is one entry in the making: operations, and who waits for the result
// of each. The zero value is empty and ready. It is for one goroutine.
type Batch[W any] struct {
	operations []*logv1.Operation
	waiters    []W
	bytes      int
	// full says that nothing may join: an operation larger than MaxBytes is in.
	full bool
}

// Add appends op, of the size that Size gave, and its waiter, unless the entry
// would become too large. The caller then proposes this batch and starts the
// next one with op; the first operation is always taken, so that one which Size
// let through can't get stuck.
func (b *Batch[W]) Add(op *logv1.Operation, size int, waiter W) bool {
	if len(b.operations) > 0 {
		if b.full || len(b.operations) == MaxOperations || b.bytes+size > MaxBytes {
			return false
		}
	}
	b.full = size > MaxBytes
	b.bytes += size
	b.operations = append(b.operations, op)
	b.waiters = append(b.waiters, waiter)
	return true
}

// Len is the number of operations.
func (b *Batch[W]) Len() int { return len(b.operations) }

// Bytes is the encoded size of the operations.
func (b *Batch[W]) Bytes() int { return b.bytes }

// Operations returns the operations in the order in which they were added.
func (b *Batch[W]) Operations() []*logv1.Operation { return b.operations }

// Waiters returns who waits, by position.
func (b *Batch[W]) Waiters() []W { return b.waiters }
