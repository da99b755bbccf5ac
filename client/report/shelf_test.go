package report

import (
	"fmt"
	"testing"

	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/client/session"
)

// shelved is a reporter that nobody runs.
func shelved(t *testing.T) *Reporter {
	t.Helper()
	machine, err := failopen.New(failopen.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return New(machine, nil, session.Hello{Client: "gateway"}, func() string { return "" })
}

// TestEachNameHasItsBook: S1-31 holds for those behind a gateway too: each has a budget of
// his own, and is told of under his name.
func TestEachNameHasItsBook(t *testing.T) {
	t.Run("S1-26_one_name_has_one_book", func(t *testing.T) {
		r := shelved(t)
		if r.TriesOf("") != r.Tries() || r.TriesOf("gateway") != r.Tries() {
			t.Error("the client itself has two books")
		}
		if a, b := r.TriesOf("a"), r.TriesOf("b"); a == b || a != r.TriesOf("a") {
			t.Error("want one book for each name")
		}
	})
	t.Run("S1-20_one's_retries_are_not_another's", func(t *testing.T) {
		r := shelved(t)
		for range 51 {
			r.TriesOf("storm").Permit(1)
		}
		if v := r.TriesOf("storm").Permit(1); v.Admit {
			t.Error("a client with nothing but retries goes on")
		}
		for _, name := range []string{"calm", ""} {
			if v := r.TriesOf(name).Permit(1); !v.Admit {
				t.Errorf("%q is refused for what another did: %+v", name, v)
			}
		}
	})
	t.Run("S1-28_considering_counts_nothing", func(t *testing.T) {
		r := shelved(t)
		b := r.TriesOf("a")
		for range 100 {
			if v := b.Consider(1); !v.Admit {
				t.Fatalf("%+v", v)
			}
		}
		if b.owes() || r.named.owes() {
			t.Error("something is to be told of what was only considered")
		}
		for range 51 {
			b.Permit(1)
		}
		if v := b.Consider(1); v.Admit || v.Reason != failopen.RetryBudget || v.RetryAfter <= 0 {
			t.Errorf("%+v, want what Permit says", v)
		}
		if v := b.Consider(0); !v.Admit {
			t.Errorf("a first attempt: %+v", v)
		}
		if v := b.Consider(4); !v.Never {
			t.Errorf("the fifth try: %+v, want never", v)
		}
	})
}

func TestWhoWaitsLongestIsToldFirst(t *testing.T) {
	r := shelved(t)
	for _, name := range []string{"a", "b", "c", "a"} {
		r.TriesOf(name).Permit(0)
	}
	var got []string
	for _, b := range r.named.next(2) {
		got = append(got, fmt.Sprint(b.client, b.take().GetTotal()))
	}
	r.TriesOf("a").Permit(0)
	for _, b := range r.named.next(10) {
		got = append(got, fmt.Sprint(b.client, b.take().GetTotal()))
	}
	if want := "[a2 b1 c1 a1]"; fmt.Sprint(got) != want {
		t.Errorf("told %v, want %s", got, want)
	}
	if r.named.owes() {
		t.Error("something is left")
	}
	b := r.TriesOf("a")
	b.Permit(0)
	if taken := r.named.next(1)[0].take(); taken.GetTotal() != 1 {
		t.Fatalf("%v", taken)
	} else {
		b.putBack(taken)
	}
	if again := r.named.next(1); len(again) != 1 || again[0].take().GetTotal() != 1 {
		t.Error("what nobody took is not in line again")
	}
}

// TestNamesAreBounded: a stream of new names takes no more memory than the bound (G10), and
// loses nothing while somebody takes the reports.
func TestNamesAreBounded(t *testing.T) {
	t.Run("S1-52_who_was_told_makes_room", func(t *testing.T) {
		r := shelved(t)
		var told int64
		const most = 3 * namedMax
		for i := range most {
			r.TriesOf(fmt.Sprint("c", i)).Permit(0)
			if i%namedRound == 0 {
				for _, b := range r.named.next(namedRound) {
					told += b.take().GetTotal()
				}
			}
		}
		for _, b := range r.named.next(most) {
			told += b.take().GetTotal()
		}
		if told != most {
			t.Errorf("%d of %d are told", told, most)
		}
		if n := len(r.named.mu.names); n != namedMax || r.named.mu.byAge.Len() != n {
			t.Errorf("%d names are kept, want %d", n, namedMax)
		}
	})
	t.Run("while_nobody_answers_the_oldest_goes", func(t *testing.T) {
		r := shelved(t)
		for i := range 3 * namedMax {
			r.TriesOf(fmt.Sprint("c", i)).Permit(0)
		}
		if n, owing := len(r.named.mu.names), len(r.named.mu.owing); n != namedMax || owing != namedMax {
			t.Errorf("%d names are kept and %d in line, want %d", n, owing, namedMax)
		}
	})
	t.Run("a_book_that_was_forgotten_writes_into_its_successor", func(t *testing.T) {
		r := shelved(t)
		old := r.TriesOf("a")
		for i := range namedMax {
			r.TriesOf(fmt.Sprint("c", i))
		}
		old.Permit(1)
		if got := r.TriesOf("a"); got == old || got.take().GetRetries() != 1 {
			t.Error("what was counted in a forgotten book is lost")
		}
	})
}
