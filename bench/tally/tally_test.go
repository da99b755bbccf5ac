package tally

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/check"
)

func names(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "key-" + strconv.Itoa(i)
	}
	return keys
}

// bucket has ten tokens, and gets one more a second.
var bucket = Bucket{Limit: "demo", Dimension: "requests", Rate: 1, Interval: time.Second, Burst: 10}

func TestTally(t *testing.T) {
	t.Parallel()
	tally := New(bucket, names(2), time.Second)
	at := func(ms int) time.Time { return tally.start.Add(time.Duration(ms) * time.Millisecond) }
	tally.Grant(0, at(1), at(5))
	tally.Grant(0, at(1), at(9))
	if tally.Touched() != 1 {
		t.Errorf("%d keys, want 1", tally.Touched())
	}
	tally.Grant(1, at(0), at(25))
	got, err := tally.spending()
	if err != nil {
		t.Fatal(err)
	}
	if got.Keys[0].Tokens[0] != 2 || got.Keys[1].Tokens[2] != 1 || got.Slot != finest || got.Keys[1].Key != "key-1" {
		t.Errorf("%+v; want two tokens of key 0 in slot 0 and one of key 1 in slot 2", got)
	}
	if tally.longest.Load() != int64(25*time.Millisecond) || tally.tokens.Load() != 3 {
		t.Errorf("longest %d, tokens %d; want 25 ms, 3", tally.longest.Load(), tally.tokens.Load())
	}
	tally.Grant(0, at(0), at(5000))
	if _, err := tally.Outside(time.Second, false); err == nil {
		t.Error("a grant after the end: no error")
	}
}

// TestOutside: what is more than the bound is broken, G1 by the longest answer and G2
// by the slack.
func TestOutside(t *testing.T) {
	t.Parallel()
	tally := New(bucket, names(1), time.Second)
	for range 12 {
		tally.Grant(0, tally.start, tally.start.Add(5*time.Millisecond))
	}
	checks, err := tally.Outside(2*time.Second, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(checks) != 2 || checks[0].Guarantee != "G1" || checks[0].OK || checks[1].Guarantee != "G2" || !checks[1].OK {
		t.Errorf("%+v, want G1 broken by a token and G2 kept", checks)
	}
	if !strings.Contains(checks[0].Text, "broken at 1 moments") {
		t.Error(checks[0].Text)
	}
	// Where a node may have held them they may have been debited earlier.
	tally.bucket.Escrow = true
	if checks, err = tally.Outside(2*time.Second, false); err != nil || !checks[0].OK {
		t.Errorf("two more than the burst from escrow: %+v, %v", checks, err)
	}
	checks, err = tally.Outside(0, true)
	if err != nil || len(checks) != 1 || checks[0].Guarantee != "G2" || checks[0].OK {
		t.Errorf("permits are only held to G2: %+v, %v", checks, err)
	}
}

// TestLogAndClients: clients may not know of more than the log has, and a log that does
// not reach back says nothing of that.
func TestLogAndClients(t *testing.T) {
	t.Parallel()
	tally := New(bucket, names(1), time.Second)
	for range 3 {
		tally.Grant(0, tally.start, tally.start.Add(time.Millisecond))
	}
	for debited, ok := range map[int64]bool{2: false, 3: true, 4: true} {
		history := &check.History{Granted: map[string]int64{"demo": debited}}
		if got := tally.within(history, "a log"); got.OK != ok || got.By != "a log and the clients" {
			t.Errorf("3 seen, %d debited: %+v", debited, got)
		}
		history.Partial = true
		if got := tally.within(history, "a log"); got.OK || !strings.Contains(got.Text, "begins with a snapshot") {
			t.Errorf("a part of a log: %+v", got)
		}
	}
}

// TestMemoryIsBounded: a long run of many keys is noted less exactly.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const many = 1_000_000
	big := New(bucket, make([]string, many), 200*time.Hour)
	if cells := many * len(big.cells[0]); cells > cellsMost+2*many || big.slot <= 0 {
		t.Errorf("a million keys and 200 hours: %d cells of %v, at most about %d", cells, big.slot, cellsMost)
	}
}
