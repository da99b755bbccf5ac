package failopen

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/fsm/bucket"
)

func TestModes(t *testing.T) {
	whole := int64(WholePPM)
	dims := []Dimension{{"requests", 10, time.Second, 10}}
	m := mustMachine(t, Config{Static: []Fallback{
		{Limit: "open", Mode: Open},
		{Limit: "closed", Mode: Closed, Dimensions: dims},
		{Limit: "share", Mode: Share, SharePPM: &whole, Dimensions: dims},
		{Limit: "unlimited", Mode: Closed, Unlimited: true},
		{Limit: "stopped", Mode: Share, SharePPM: &whole, Dimensions: []Dimension{{"requests", 0, time.Second, 10}}},
	}})
	awayAt(t, m, start)
	now := start.Add(time.Second)
	charge := func(limit string, amount int64) Charge {
		return Charge{Limit: limit, Dimension: "requests", Amount: amount}
	}
	for _, c := range []struct {
		name    string
		charges []Charge
		want    Verdict
	}{
		{"open", []Charge{charge("open", 1<<50)}, Verdict{Admit: true, Charge: -1}},
		{"a limit that nobody knows", []Charge{charge("new", 1)}, Verdict{Admit: true, Charge: -1}},
		{"closed", []Charge{charge("closed", 1)}, Verdict{Reason: Refused, RetryAfter: awayFor}},
		{"unlimited", []Charge{charge("unlimited", 1<<50)}, Verdict{Admit: true, Charge: -1}},
		{"a rate of nothing", []Charge{charge("stopped", 1)}, Verdict{Reason: NoShare, RetryAfter: awayFor}},
		{
			"a dimension that has no rate",
			[]Charge{{Limit: "share", Dimension: "tokens", Amount: 1}},
			Verdict{Reason: NoShare, RetryAfter: awayFor},
		},
		{"the share", []Charge{charge("share", 10)}, Verdict{Admit: true, Charge: -1}},
		{"the share is used up", []Charge{charge("share", 3)}, Verdict{Reason: Rate, RetryAfter: 300 * time.Millisecond}},
		{
			"G7_what_only_the_return_ends_comes_first",
			[]Charge{charge("open", 1), charge("share", 10), charge("closed", 1)},
			Verdict{Reason: Refused, Charge: 2, RetryAfter: awayFor},
		},
		{"nothing is asked for", nil, Verdict{Admit: true, Charge: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := m.Decide(now, Request{Charges: c.charges}); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestG3AllOrNothing(t *testing.T) {
	t.Run("G3_a_refusal_takes_nothing", func(t *testing.T) {
		tokens := quarter()
		tokens.Limit = "other"
		m := mustMachine(t, Config{Static: []Fallback{quarter(), tokens}})
		awayAt(t, m, start)
		now := start.Add(time.Second)
		if got := admits(m, now, 1, ask(20)); got != 1 {
			t.Fatal("refused its share")
		}
		both := Request{Charges: []Charge{
			{Limit: "other", Dimension: "requests", Amount: 25},
			{Limit: "other", Key: "k", Dimension: "requests", Amount: 25},
			{Limit: "unknown", Dimension: "requests", Amount: 1},
			{Limit: "l", Dimension: "requests", Amount: 6},
		}}
		want := Verdict{Reason: Rate, Charge: 3, RetryAfter: 40 * time.Millisecond}
		if got := m.Decide(now, both); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if got := len(m.mu.accounts.paced); got != 1 {
			t.Errorf("%d buckets after a refusal, want the one that was there", got)
		}
		if got := len(m.Admitted()); got != 1 {
			t.Errorf("%d accounts after a refusal, want the one that was there", got)
		}
		// Of a bucket that is there already, too.
		turned := Request{Charges: []Charge{
			{Limit: "l", Dimension: "requests", Amount: 5}, {Limit: "other", Dimension: "requests", Amount: 26},
		}}
		if got := m.Decide(now, turned); got.Reason != ExceedsShare || got.Charge != 1 {
			t.Fatalf("%+v", got)
		}
		both.Charges[3].Amount = 5
		if got := m.Decide(now, both); !got.Admit {
			t.Errorf("all can be paid: %+v", got)
		}
		if got := m.Decide(now, Request{Charges: both.Charges[:1]}); got.Admit {
			t.Error("what was paid was not taken")
		}
	})
}

func TestKeysApart(t *testing.T) {
	t.Run("A22_keys_and_classes", func(t *testing.T) {
		m := mustMachine(t, Config{Static: []Fallback{quarter()}})
		awayAt(t, m, start)
		now := start.Add(time.Second)
		for _, key := range []string{"", "a", "a\x00", "b"} {
			count := 0
			for i := range 100 {
				r := Request{
					Class:   []string{"live", "batch"}[i%2],
					Charges: []Charge{{Limit: "l", Key: key, Dimension: "requests", Amount: 1}},
				}
				if m.Decide(now, r).Admit {
					count++
				}
			}
			if count != 25 {
				t.Errorf("key %q: %d admitted in two classes, want 25 together", key, count)
			}
		}
		want := Spent{
			Limit: "l", Dimension: "requests", Mode: Share, Tokens: 100, Bounded: true, Worst: 200, Fleet: 800, Keys: 4,
		}
		if got := m.Summary(now).Spent; len(got) != 1 || got[0] != want {
			t.Errorf("published %+v, want %+v", got, want)
		}
	})
}

func TestRuleChangesWhileAway(t *testing.T) {
	t.Run("T52_a_share_that_shrinks_to_nothing", func(t *testing.T) {
		m := mustMachine(t, Config{Static: []Fallback{quarter()}})
		awayAt(t, m, start)
		now := start.Add(time.Second)
		shrunk, none := quarter(), int64(0)
		shrunk.SharePPM = &none
		if err := m.Learn(now, Lesson{Limits: []Fallback{shrunk}}); err != nil {
			t.Fatal(err)
		}
		if got := m.Decide(now, ask(1)); got.Reason != NoShare {
			t.Errorf("%+v", got)
		}
	})
	m := mustMachine(t, Config{Static: []Fallback{quarter()}})
	awayAt(t, m, start)
	now := start.Add(500 * time.Millisecond)
	if got := admits(m, now, 10, ask(1)); got != 10 {
		t.Fatalf("%d admitted, want 10 of 12", got)
	}
	half, ppm := quarter(), int64(500_000)
	half.SharePPM = &ppm
	if err := m.Learn(now, Lesson{Limits: []Fallback{half}}); err != nil {
		t.Fatal(err)
	}
	if got := admits(m, now, 10, ask(1)); got != 2 {
		t.Errorf("%d admitted at the change, want the 2 that were left", got)
	}
	fresh := Request{Charges: []Charge{{Limit: "l", Key: "new", Dimension: "requests", Amount: 1}}}
	if got := admits(m, now, 10, fresh); got != 0 {
		t.Errorf("%d admitted of a new key, which has earned nothing at this rate", got)
	}
	now = now.Add(100 * time.Millisecond)
	if err := m.Learn(now, Lesson{Limits: []Fallback{half}}); err != nil {
		t.Fatal(err)
	}
	if got := admits(m, now, 10, fresh); got != 5 {
		t.Errorf("%d admitted of a new key after 100 ms, want 5: learning the same again changes nothing", got)
	}
}

func TestG10Overflow(t *testing.T) {
	t.Run("G10_keys_beyond_the_most", func(t *testing.T) {
		m := mustMachine(t, Config{KeysMax: 3, Static: []Fallback{quarter()}})
		awayAt(t, m, start)
		now := start.Add(time.Second)
		total := 0
		for i := range 10 {
			total += admits(m, now, 100, Request{Class: "c", Charges: []Charge{
				{Limit: "l", Key: fmt.Sprint("key ", i), Dimension: "requests", Amount: 1},
			}})
		}
		if total != 4*25 {
			t.Errorf("%d admitted, want 25 for each of three keys and 25 for all others", total)
		}
		for i := range 10 {
			m.Decide(now, Request{Charges: []Charge{{Limit: fmt.Sprint("limit ", i), Dimension: "d", Amount: 1}}})
		}
		want := []Account{
			{Limit: "", Dimension: "", Tokens: 8, Overflow: true},
			{Limit: "l", Key: "key 0", Dimension: "requests", Class: "c", Tokens: 25},
			{Limit: "l", Key: "key 1", Dimension: "requests", Class: "c", Tokens: 25},
			{Limit: "l", Key: "key 2", Dimension: "requests", Class: "c", Tokens: 25},
			{Limit: "l", Dimension: "requests", Tokens: 25, Overflow: true},
			{Limit: "limit 0", Dimension: "d", Tokens: 1, Overflow: true},
			{Limit: "limit 1", Dimension: "d", Tokens: 1, Overflow: true},
		}
		if diff := cmp.Diff(want, m.Admitted()); diff != "" {
			t.Errorf("accounts (-want +got):\n%s", diff)
		}
		a := &m.mu.accounts
		if len(a.byKey) > 3 || len(a.paced) > 3 || len(a.tallies) > 3 {
			t.Errorf("%d accounts, %d buckets, %d tallies; want at most 3", len(a.byKey), len(a.paced), len(a.tallies))
		}
	})
	t.Run("G10_refusals_leave_nothing", func(t *testing.T) {
		m := mustMachine(t, Config{Static: []Fallback{quarter()}})
		awayAt(t, m, start)
		for i := range 1000 {
			m.Decide(start, Request{Charges: []Charge{{Limit: "l", Key: fmt.Sprint(i), Dimension: "requests", Amount: 1}}})
		}
		if a := &m.mu.accounts; len(a.byKey)+len(a.paced)+len(a.tallies) != 0 {
			t.Errorf("%d accounts, %d buckets, %d tallies", len(a.byKey), len(a.paced), len(a.tallies))
		}
	})
	t.Run("G10_counts_stay_at_the_end", func(t *testing.T) {
		m := mustMachine(t, Config{})
		for range 5 {
			m.Decide(start, ask(bucket.MaxTokens))
		}
		if got := m.Admitted()[0].Tokens; got != bucket.MaxTokens {
			t.Errorf("%d tokens", got)
		}
	})
}

func TestBadRules(t *testing.T) {
	below, above := int64(-1), int64(WholePPM+1)
	for want, f := range map[string]Fallback{
		`limit "l": mode 3: must be from 0 to 2`:                  {Limit: "l", Mode: 3},
		`limit "l": share -1 ppm: must be from 0 to 1000000`:      {Limit: "l", SharePPM: &below},
		`limit "l": share 1000001 ppm: must be from 0 to 1000000`: {Limit: "l", SharePPM: &above},
		`limit "l": dimension "d": interval 0s: must be positive`: {Limit: "l", Dimensions: []Dimension{{Name: "d"}}},
		`limit "l": dimension "d": is there twice`: {
			Limit: "l", Dimensions: []Dimension{{"d", 1, 1, 1}, {"d", 1, 1, 1}},
		},
		`limit "l": dimension "d": amount -1: must be from 0 to 9007199254740992`: {
			Limit: "l", Dimensions: []Dimension{{"d", -1, 1, 1}},
		},
		`limit "l": dimension "d": burst -1: must be from 0 to 9007199254740992`: {
			Limit: "l", Dimensions: []Dimension{{"d", 1, 1, -1}},
		},
	} {
		t.Run(want, func(t *testing.T) {
			m := mustMachine(t, Config{})
			if err := m.Learn(start, Lesson{Limits: []Fallback{f, quarter()}}); err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
			if _, err := New(Config{Static: []Fallback{f}}); err == nil || err.Error() != "static: "+want {
				t.Errorf("error %v, want static: %s", err, want)
			}
			if _, ok := m.Known("", []Charge{{Limit: "l"}}); !ok {
				t.Error("the good rule beside it was not learnt")
			}
		})
	}
}

func TestBadConfig(t *testing.T) {
	bad := DefaultRetries()
	bad.Window = 0
	for _, c := range []Config{
		{Retries: &bad},
		{KeysMax: -1},
		{ClientsMax: -1},
		{Fallback: Fallback{Mode: -1}},
		{Static: []Fallback{quarter(), quarter()}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("accepted %+v", c)
		}
	}
}
