package held

import (
	"strconv"
	"testing"
)

func TestBook(t *testing.T) {
	t.Parallel()
	b := New()
	if b.Has("a", "k") {
		t.Error("nothing was noted")
	}
	b.Note("a", "k", true)
	b.Note("a", "other", false)
	if !b.Has("a", "k") || b.Has("k", "a") || b.Has("ak", "") {
		t.Error("want a/k and nothing else")
	}
	b.Note("a", "k", false)
	if b.Has("a", "k") {
		t.Error("the last that was noted counts")
	}
}

// TestBookIsBounded: of more buckets than there is room for, some are forgotten, and none
// is taken for another.
func TestBookIsBounded(t *testing.T) {
	t.Parallel()
	b := New()
	const many = 4 * size
	for i := range many {
		b.Note("a", strconv.Itoa(i), true)
	}
	known := 0
	for i := range many {
		if b.Has("a", strconv.Itoa(i)) {
			known++
		}
		if b.Has("b", strconv.Itoa(i)) {
			t.Errorf("b/%d was not noted", i)
		}
	}
	if known == 0 || known > size {
		t.Errorf("%d of %d are remembered, at most %d", known, many, size)
	}
}

func BenchmarkHas(b *testing.B) {
	book := New()
	book.Note("bench-limit", "key-17", true)
	for b.Loop() {
		book.Has("bench-limit", "key-17")
	}
}
