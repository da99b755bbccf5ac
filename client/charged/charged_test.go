package charged_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorlease/quorlease/client/charged"
	"github.com/quorlease/quorlease/client/failopen"
)

func work(team string, amounts map[string]int64) *charged.Work {
	return &charged.Work{
		Client: "billing", Attributes: map[string]string{"team": team}, Amounts: amounts,
		Charges: []failopen.Charge{{Limit: "named", Dimension: "requests", Amount: 3}},
	}
}

func TestTheSameWorkIsChargedTheSame(t *testing.T) {
	t.Parallel()
	var book charged.Book
	if got, ok := book.Of(work("red", nil)); ok || len(got) != 1 {
		t.Errorf("%v, %v before anything was charged; want its own charge, false", got, ok)
	}
	own := failopen.Charge{Limit: "named", Dimension: "requests", Amount: 3}
	book.Note(work("red", map[string]int64{"tokens": 900}), []failopen.Charge{
		{Limit: "team", Key: "red", Dimension: "requests", Amount: 1},
		own,
		{Limit: "team", Key: "red", Dimension: "tokens", Amount: 900},
	})
	want := []failopen.Charge{
		own,
		{Limit: "team", Key: "red", Dimension: "requests", Amount: 1},
		{Limit: "team", Key: "red", Dimension: "tokens", Amount: 50},
	}
	if got, ok := book.Of(work("red", map[string]int64{"tokens": 50})); !ok || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, ok, want)
	}
	other := work("red", map[string]int64{"tokens": 50})
	other.Client = "search"
	for name, w := range map[string]*charged.Work{
		"another value": work("blue", map[string]int64{"tokens": 50}), "other dimensions": work("red", nil),
		"another client": other,
	} {
		if got, ok := book.Of(w); ok {
			t.Errorf("%s: %v is remembered", name, got)
		}
	}
	if got, ok := book.Of(&charged.Work{Charges: []failopen.Charge{own}}); !ok || len(got) != 1 {
		t.Errorf("%v, %v for charges alone, want these", got, ok)
	}
}

// TestWhatIsRememberedIsBounded: a client that describes every piece of work anew
// forgets the oldest.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		var book charged.Book
		const many = 10_000
		for i := range many {
			book.Note(work(fmt.Sprint(i), nil), nil)
		}
		known := 0
		for i := range many {
			if _, ok := book.Of(work(fmt.Sprint(i), nil)); ok {
				known++
			}
		}
		if _, ok := book.Of(work(fmt.Sprint(many-1), nil)); !ok || known > 2048 {
			t.Errorf("%d are remembered, the last one %v; want at most 2048 and true", known, ok)
		}
	})
}
