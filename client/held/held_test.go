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
	for range sure - 1 {
		if b.Note("a", "k", false); !b.Has("a", "k") {
			t.Error("want it known until three answers in a row say otherwise")
		}
	}
	if b.Note("a", "k", false); b.Has("a", "k") {
		t.Error("want it forgotten after three answers from the log")
	}
	b.Note("a", "k", true)
	b.Note("a", "k", false)
	if !b.Has("a", "k") {
		t.Error("want the count to begin anew with each answer from what is held")
	}
}

// TestBookIsBounded: of more buckets than there is room for, some are forgotten, and none
// is taken for another.
func TestBookIsBounded(t *testing.T) {
	t.Parallel()
	b := New()
	const room = sets * ways
	const many = 4 * room
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
	if known == 0 || known > room {
		t.Errorf("%d of %d are remembered, at most %d", known, many, room)
	}
}

// TestSomeHundredsFit: what a client asks for all the time has room beside one another.
func TestSomeHundredsFit(t *testing.T) {
	t.Parallel()
	b := New()
	const some = 500
	for i := range some {
		b.Note("a", strconv.Itoa(i), true)
	}
	known := 0
	for i := range some {
		if b.Has("a", strconv.Itoa(i)) {
			known++
		}
	}
	if known < some-1 {
		t.Errorf("%d of %d are remembered", known, some)
	}
}

func BenchmarkHas(b *testing.B) {
	book := New()
	book.Note("bench-limit", "key-17", true)
	for b.Loop() {
		book.Has("bench-limit", "key-17")
	}
}
