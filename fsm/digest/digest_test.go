package digest_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/quorlease/quorlease/fsm/digest"
)

// TestG9DigestsStayAsTheyAre: the numbers are written down, so that another
// architecture or a change shows.
func TestG9DigestsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	sum := digest.New(7)
	sum.Word(1<<63 + 5)
	sum.Int(-2)
	sum.Bool(true)
	sum.Text("")
	sum.Text("tenant-4711 and more than a word")
	t.Run("G9", func(t *testing.T) {
		if got, want := fmt.Sprintf("%016x", sum.Value()), golden; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

const golden = "671928a71e4cf895"

// TestDigestsDiffer: near inputs have digests that are far from one another.
func TestDigestsDiffer(t *testing.T) {
	t.Parallel()
	seen := make(map[uint64]string)
	add := func(name string, build func(*digest.Sum)) {
		sum := digest.New(1)
		build(&sum)
		if other, there := seen[sum.Value()]; there {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[sum.Value()] = name
	}
	for n := range 2000 {
		add(fmt.Sprint("word ", n), func(s *digest.Sum) { s.Word(uint64(n)) })
		add(fmt.Sprint("words ", n), func(s *digest.Sum) { s.Word(uint64(n)); s.Word(0) })
		add(fmt.Sprint("text ", n), func(s *digest.Sum) { s.Text(fmt.Sprint("t", n)) })
	}
	// The same bytes, cut otherwise.
	for cut := range 21 {
		text := "abcdefghijklmnopqrst"
		add(fmt.Sprint("cut ", cut), func(s *digest.Sum) { s.Text(text[:cut]); s.Text(text[cut:]) })
	}
	changed := 0
	for bit := range 64 {
		a, b := digest.New(1), digest.New(1)
		a.Word(12345)
		b.Word(12345 ^ 1<<bit)
		changed += bits.OnesCount64(a.Value() ^ b.Value())
	}
	if mean := changed / 64; mean < 26 || mean > 38 {
		t.Errorf("a bit of input changes %d bits of the digest, want about 32", mean)
	}
}
