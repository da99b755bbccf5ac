package shares_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/record"
	"github.com/quorlease/quorlease/fsm/shares"
)

const second = bucket.Instant(time.Second)

func id(i int) shares.ID {
	var session record.SessionID
	binary.BigEndian.PutUint64(session[:], uint64(i+1))
	return shares.ID{Limit: "shared", Session: session}
}

// holder is a session as it is outside: it knows what it was told last, and for how long
// it may use it.
type holder struct {
	id   shares.ID
	held shares.Promise
	// until is for how long it may use it by real time; answered is a promise on its way.
	until    bucket.Instant
	answered []shares.Promise
	sent     []bucket.Instant
	there    bool
}

// uses is what it may be using at now.
func (h *holder) uses(now bucket.Instant) int64 {
	if now >= h.until {
		return 0
	}
	return h.held.PPM
}

// hear takes the oldest answer, or a later one that overtook it.
func (h *holder) hear(random *rand.Rand) {
	if len(h.answered) == 0 {
		return
	}
	i := random.IntN(len(h.answered))
	if p := h.answered[i]; p.Version >= h.held.Version && p.Version > 0 {
		h.held, h.until = p, max(h.until, h.sent[i]+bucket.Instant(shares.Hold))
	}
	h.answered, h.sent = h.answered[i+1:], h.sent[i+1:]
}

// world is a hundred sessions that come, go in every way there is, and come back.
type world struct {
	random  *rand.Rand
	book    *shares.Book
	now     bucket.Instant
	holders []*holder
}

func (w *world) step() {
	w.now += bucket.Instant(w.random.Int64N(int64(900 * time.Millisecond)))
	if w.random.IntN(60) == 0 {
		// Some time in which the rest goes on without most of them.
		w.now += bucket.Instant(w.random.Int64N(int64(shares.Hold)))
	}
	w.book.Forget(w.now, 1000)
	h := w.holders[w.random.IntN(len(w.holders))]
	switch draw := w.random.IntN(40); {
	case draw == 0:
		// It says good-bye: it uses nothing from before it says so.
		*h = holder{id: h.id}
		w.book.Leave(h.id)
	case draw == 1:
		// It is cut off, and uses what it holds until it may no more; and its answers are
		// lost.
		h.there, h.answered, h.sent = false, nil, nil
	case draw < 5 || h.there:
		h.there = true
		p := w.book.Refresh(w.now, h.id, h.held.Version)
		if w.random.IntN(4) > 0 {
			h.answered, h.sent = append(h.answered, p), append(h.sent, w.now)
		}
	}
	if w.random.IntN(3) > 0 {
		h.hear(w.random)
	}
}

func (w *world) sum() (sum int64) {
	for _, h := range w.holders {
		sum += h.uses(w.now)
	}
	return sum
}

// TestSumOfShares: a hundred sessions that join, leave, vanish and are cut off one after
// another, whose refreshes and answers are lost and overtaken, are never promised more
// than all of the limit together.
func TestSumOfShares(t *testing.T) {
	t.Parallel()
	for part := range 8 {
		t.Run(fmt.Sprintf("T33_T50_part_%d", part), func(t *testing.T) {
			t.Parallel()
			most := int64(0)
			for run := range 300 {
				w := &world{random: rand.New(rand.NewPCG(uint64(part), uint64(run))), book: shares.New()}
				for i := range 1 + w.random.IntN(100) {
					w.holders = append(w.holders, &holder{id: id(i)})
				}
				for step := range 600 {
					w.step()
					sum := w.sum()
					if _, promised := w.book.Sessions("shared"); sum > promised || promised > shares.Whole {
						t.Fatalf("run %d, step %d: %d are used, %d promised", run, step, sum, promised)
					}
					most = max(most, sum)
				}
				if w.book.Digest() != w.book.Recount() {
					t.Fatalf("run %d: the digest is not that of the records", run)
				}
			}
			if most < shares.Whole*9/10 {
				t.Errorf("never more than %d was used: nothing was tested", most)
			}
		})
	}
}

// refresh is one session that refreshes and knows of it at once.
func refresh(b *shares.Book, now bucket.Instant, h *holder) {
	h.held = b.Refresh(now, h.id, h.held.Version)
}

// TestRememberedShares: eight clients that come one after another never hold all
// and a half and a third.
func TestRememberedShares(t *testing.T) {
	t.Parallel()
	t.Run("T33", func(t *testing.T) {
		t.Parallel()
		b := shares.New()
		var all []*holder
		for i := range 8 {
			all = append(all, &holder{id: id(i)})
			// The newcomer alone refreshes: the others remember what they had.
			refresh(b, second, all[i])
			sum := int64(0)
			for _, h := range all {
				sum += h.held.PPM
			}
			if sum > shares.Whole {
				t.Fatalf("%d clients hold %d", i+1, sum)
			}
		}
	})
}

// TestCutOffOneAfterAnother: what somebody may be using is nobody else's, however long
// nobody has heard of him, and a smaller promise counts when it is known.
func TestCutOffOneAfterAnother(t *testing.T) {
	t.Parallel()
	t.Run("T50", func(t *testing.T) {
		t.Parallel()
		b := shares.New()
		one, two := &holder{id: id(0)}, &holder{id: id(1)}
		refresh(b, 0, one)
		b.Refresh(second, one.id, 0)
		refresh(b, second, two)
		// A half is promised to the first, who does not know of it.
		if p := b.Refresh(2*second, one.id, 1); p.PPM != shares.Whole/2 {
			t.Errorf("promised %d, want half", p.PPM)
		}
		if refresh(b, 2*second, two); two.held.PPM != 0 {
			t.Errorf("the other has %d though the first may use all", two.held.PPM)
		}
		if refresh(b, 2*second+bucket.Instant(shares.Hold)-1, two); two.held.PPM != 0 {
			t.Errorf("the other has %d while the first may use all", two.held.PPM)
		}
		b.Forget(2*second+bucket.Instant(shares.Hold), 1)
		if refresh(b, 2*second+bucket.Instant(shares.Hold), two); two.held.PPM != shares.Whole {
			t.Errorf("the other has %d when the first may use nothing any more", two.held.PPM)
		}
	})
}

// TestNothingIsAPromise: a share of nothing is one, with a version.
func TestNothingIsAPromise(t *testing.T) {
	t.Parallel()
	t.Run("T52", func(t *testing.T) {
		t.Parallel()
		b := shares.New()
		b.Refresh(0, id(0), 0)
		if p := b.Refresh(0, id(1), 0); p.PPM != 0 || p.Version == 0 {
			t.Errorf("a newcomer beside one who has all is promised %+v, want nothing, in so many words", p)
		}
		if sessions, _ := b.Sessions("shared"); sessions != 2 {
			t.Errorf("%d sessions are counted, want those with nothing too", sessions)
		}
	})
}

// TestStorm: a hundred who join one who has everything all have a fair share after a few
// rounds, though each knows what it was told a second later only.
func TestStorm(t *testing.T) {
	t.Parallel()
	t.Run("A20_a_hundred_join_one", func(t *testing.T) {
		t.Parallel()
		b := shares.New()
		all := []*holder{{id: id(0)}}
		refresh(b, 0, all[0])
		refresh(b, 0, all[0])
		for i := range 100 {
			all = append(all, &holder{id: id(i + 1)})
		}
		random := rand.New(rand.NewPCG(1, 2))
		fair := int64(shares.Whole / len(all))
		for round := 1; ; round++ {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			now := bucket.Instant(round) * second
			for _, h := range all {
				p := b.Refresh(now, h.id, h.held.Version)
				h.answered = append(h.answered, p)
			}
			least := int64(shares.Whole)
			for _, h := range all {
				h.held, h.answered = h.answered[0], nil
				least = min(least, h.held.PPM)
			}
			if least >= fair*9/10 {
				t.Logf("fair after %d rounds", round)
				return
			}
			if round == 4 {
				t.Fatalf("after %d rounds somebody has %d, fair is %d", round, least, fair)
			}
		}
	})
}

// TestSilentSessions: who never says what it knows is promised no more than a few things.
func TestSilentSessions(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		b := shares.New()
		for i := range 1000 {
			b.Refresh(0, id(0), 0)
			b.Refresh(0, id(i+1), 0)
		}
		if n := shares.PromisesOf(b, id(0)); n > 16 {
			t.Errorf("%d promises are remembered of a session that says nothing", n)
		}
	})
}

// TestVersionsAtTheEnd: whatever version a session says that it holds, and however often
// what it is promised changes afterwards, a snapshot of the book can be read.
func TestVersionsAtTheEnd(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		b := shares.New()
		for range 100 {
			b.Refresh(0, id(0), shares.MaxVersion)
			b.Refresh(0, id(1), 0)
			b.Refresh(0, id(0), shares.MaxVersion)
			b.Leave(id(1))
		}
		again := shares.New()
		for e := range b.Freeze().All() {
			if err := again.Load(e.Save(), 0); err != nil {
				t.Fatal(err)
			}
		}
		if b.Digest() != again.Digest() {
			t.Error("it is another book")
		}
	})
}

// TestVersionsFromElsewhere: a session that knows versions of a book that was lost is
// promised newer ones, and what it says frees nothing.
func TestVersionsFromElsewhere(t *testing.T) {
	t.Parallel()
	b := shares.New()
	first := b.Refresh(0, id(0), 900)
	if first.Version != 901 {
		t.Errorf("version %d, want 901", first.Version)
	}
	b.Refresh(0, id(1), 0)
	b.Refresh(0, id(0), 5000)
	if _, promised := b.Sessions("shared"); promised != shares.Whole {
		t.Errorf("%d is promised, want all still", promised)
	}
}
