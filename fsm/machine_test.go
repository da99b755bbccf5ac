package fsm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
	counted "github.com/quorlease/quorlease/fsm/tally"
)

// started is a driver with one limit, "api", without keys.
func started(t testing.TB, rate string, burst int64) *fsmtest.Driver {
	t.Helper()
	d := fsmtest.New(t)
	d.At(0, fsmtest.Apply(fsmtest.Limit("api", fsmtest.Dimension(t, "requests", rate, burst))))
	return d
}

func one(n int64) *logv1.Operation {
	return fsmtest.Acquire("", fsmtest.Charge("api", "", "requests", n))
}

// TestA01ShuffledStamps: whatever the order of stamps, what is granted is the
// burst and the refill up to the largest of them.
func TestA01ShuffledStamps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("A01_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			d := started(t, "100/1s", 100)
			granted, latest := int64(0), time.Duration(0)
			for i := range 500 {
				at := time.Duration(i)*10*time.Millisecond + time.Duration(random.Int64N(int64(10*time.Second))) - 5*time.Second
				latest = max(latest, at)
				n := 1 + random.Int64N(20)
				if d.Acquire(at, one(n)).GetGranted() {
					granted += n
				}
			}
			if most := 100 + int64(latest*100/time.Second); granted > most {
				t.Errorf("%d granted until %v, at most %d", granted, latest, most)
			}
		})
	}
}

func TestA03NeverAboveTheBurstNorDoubled(t *testing.T) {
	t.Parallel()
	t.Run("A03", func(t *testing.T) {
		t.Parallel()
		d := started(t, "3/1s", 3)
		var answers strings.Builder
		var grants []int
		for i := range 100 {
			answer := d.Acquire(time.Duration(i)*100*time.Millisecond, one(1))
			if left := answer.GetRemaining()[0].GetTokens(); left < 0 || left > 3 {
				t.Errorf("%d left at %d", left, i)
			}
			if answer.GetGranted() {
				grants = append(grants, i)
				answers.WriteByte('G')
				continue
			}
			answers.WriteByte('D')
		}
		if got, want := answers.String()[:11], "GGGDGDDGDDG"; got != want {
			t.Errorf("the first answers are %s, want %s", got, want)
		}
		if len(grants) != 32 {
			t.Errorf("%d grants, want 32", len(grants))
		}
		for i, first := range grants {
			within := func(tenths int) int {
				return len(slices.DeleteFunc(slices.Clone(grants[i:]), func(g int) bool { return g > first+tenths }))
			}
			if within(10) > 6 || within(20) > 9 {
				t.Errorf("from %d: %d grants in 1 s, %d in 2 s; at most 6 and 9", first, within(10), within(20))
			}
		}
	})
}

// TestA12ReloadsAdmitNothing applies two files in turn, a thousand times a
// second, and counts what is granted.
func TestA12ReloadsAdmitNothing(t *testing.T) {
	t.Parallel()
	t.Run("A12", func(t *testing.T) {
		t.Parallel()
		d := fsmtest.New(t)
		limits := []*logv1.Limit{
			fsmtest.Keyed("api", fsmtest.Dimension(t, "requests", "10/1s", 10)),
			fsmtest.Keyed("api", fsmtest.Dimension(t, "requests", "10/1s", 20)),
		}
		granted := int64(0)
		for i := range 5000 {
			results := d.At(time.Duration(i)*time.Millisecond, fsmtest.Apply(limits[i%2]),
				fsmtest.Acquire("", fsmtest.Charge("api", "k", "requests", 1)))
			if results[1].GetAcquire().GetGranted() {
				granted++
			}
			if i%700 == 0 {
				// Keys that nobody looks at have versions to pass.
				d.At(0, fsmtest.Acquire("", fsmtest.Charge("api", fmt.Sprint("idle", i), "requests", 1)))
			}
		}
		// The burst when it began was 10.
		if most := int64(10 + 50); granted > most || granted < most-2 {
			t.Errorf("%d granted in 5 s, want %d", granted, most)
		}
	})
}

// TestA21OrderOfCharges: every order of the charges gets the same answer.
func TestA21OrderOfCharges(t *testing.T) {
	t.Parallel()
	t.Run("A21", func(t *testing.T) {
		t.Parallel()
		for _, amounts := range [][3]int64{{1, 1, 1}, {11, 1, 4}, {5, 9, 9}, {11, 11, 11}, {10, 10, 10}} {
			want := ""
			for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
				d := fsmtest.New(t)
				a := fsmtest.Limit("a", fsmtest.Dimension(t, "requests", "1/1s", 10), fsmtest.Dimension(t, "tokens", "2/1s", 10))
				b := fsmtest.Keyed("b", fsmtest.Dimension(t, "requests", "3/1s", 10))
				b.MaxKeys = 1
				d.At(0, fsmtest.Apply(a, b), fsmtest.Acquire("", fsmtest.Charge("a", "", "tokens", 7),
					fsmtest.Charge("b", "other", "requests", 3)))
				charges := [3]*logv1.Charge{
					fsmtest.Charge("a", "", "requests", amounts[0]), fsmtest.Charge("a", "", "tokens", amounts[1]),
					fsmtest.Charge("b", "k", "requests", amounts[2]),
				}
				answer := d.Acquire(0, fsmtest.Track("id", charges[order[0]], charges[order[1]], charges[order[2]]))
				got := fmt.Sprintf("%v %016x", answer, d.Hash())
				if want == "" {
					want = got
				}
				if got != want {
					t.Fatalf("%v in order %v:\n%s\nwant\n%s", amounts, order, got, want)
				}
			}
		}
	})
}

// TestA22KeysThatAreNone: what is no key is refused, and nothing comes into
// being.
func TestA22KeysThatAreNone(t *testing.T) {
	t.Parallel()
	d := fsmtest.New(t)
	d.At(0, fsmtest.Apply(fsmtest.Keyed("api", fsmtest.Dimension(t, "requests", "1/1s", 1))))
	for name, key := range map[string]string{
		"empty": "", "too_long": strings.Repeat("k", 513), "NUL": "a\x00b", "newline": "a\nb",
		"invalid_UTF-8": "a\xffb", "C1_control": "a\u0085b", "delete": "a\x7fb",
	} {
		t.Run("A22_"+name, func(t *testing.T) {
			// Not through the log, which takes valid UTF-8 only.
			results, _ := d.Apply(d.Index()+1, &logv1.Entry{Operations: []*logv1.Operation{
				fsmtest.Acquire("", fsmtest.Charge("api", key, "requests", 1)),
			}})
			if refusal := results[0].GetRefusal(); refusal.GetField() != "charges[0].key" {
				t.Errorf("%q: %v", key, results[0])
			}
		})
	}
	t.Run("A22_long_keys_that_begin_alike", func(t *testing.T) {
		for _, common := range []int{10, 64, 256, 511} {
			for _, last := range []string{"x", "y"} {
				answer := d.Acquire(0, fsmtest.Acquire("", fsmtest.Charge("api", strings.Repeat("k", common)+last, "requests", 1)))
				if !answer.GetGranted() {
					t.Errorf("%d bytes alike: %v", common, answer)
				}
			}
		}
	})
	if keys := d.Counts().Keys; keys != 8 {
		t.Errorf("%d keys, want 8", keys)
	}
}

// TestVersionsAreBounded: a file applied in a loop keeps no history of its own,
// also while a key lags behind.
func TestVersionsAreBounded(t *testing.T) {
	t.Parallel()
	d := fsmtest.New(t)
	limit := fsmtest.Keyed("api", fsmtest.Dimension(t, "requests", "1/1h", 100))
	d.At(0, fsmtest.Apply(limit), fsmtest.Acquire("", fsmtest.Charge("api", "lagging", "requests", 50)))
	size := 0
	for i := range 200 {
		limit = fsmtest.Keyed("api", fsmtest.Dimension(t, "requests", "1/1h", int64(60+i%2)))
		d.At(time.Duration(i)*time.Millisecond, fsmtest.Apply(limit))
		if i == 40 {
			// From here on the history of revisions is the same for every entry.
			size = len(fsmtest.Saved(t, d.Machine))
		}
	}
	if now := len(fsmtest.Saved(t, d.Machine)); now > size+160*400 {
		t.Errorf("a snapshot of %d bytes became %d", size, now)
	}
	if level := d.Level(0, "api", "lagging", "requests"); level != 50 {
		t.Errorf("level %d, want 50", level)
	}
}

// TestG10HistoryAndMembersAreBounded: so many changes and members, and no more.
func TestG10HistoryAndMembersAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		d := fsmtest.New(t)
		for i := range 300 {
			limit := fsmtest.Limit("api", fsmtest.Dimension(t, "requests", "1/1s", int64(10+i)))
			d.At(0, fsmtest.Apply(limit), fsmtest.Operation(&logv1.SetNode{
				Node: &logv1.NodeRecord{RaftId: fmt.Sprint("n", i)},
			}))
		}
		if n := len(d.History(0)); n != 256 {
			t.Errorf("%d revisions are kept, want 256", n)
		}
		if newest := d.History(1); len(newest) != 1 || newest[0].Revision != 300 {
			t.Errorf("the newest is %+v, want 300", newest)
		}
		if n := len(d.Nodes()); n != 64 {
			t.Errorf("%d nodes, want 64", n)
		}
	})
}

// TestT31CountsThatAreHere: a node learns which of its counts its own replica has
// applied, process by process.
func TestT31CountsThatAreHere(t *testing.T) {
	t.Parallel()
	t.Run("T31", func(t *testing.T) {
		t.Parallel()
		d := fsmtest.WithShadow(t)
		slice := func(total, retries int64) *logv1.ClientSlice {
			return &logv1.ClientSlice{Client: "c", Slice: 100, Total: total, Retries: retries}
		}
		d.At(100*time.Second, fsmtest.Report("n1", 1, slice(10, 2)))
		d.At(100*time.Second, fsmtest.Report("n1", 2, slice(3, 1)))
		d.At(100*time.Second, fsmtest.Report("n1", 1, slice(7, 1)))
		for _, tt := range []struct {
			node           string
			boot           uint64
			total, retries int64
		}{{"n1", 1, 10, 2}, {"n1", 2, 3, 1}, {"n1", 3, 0, 0}, {"n2", 1, 0, 0}} {
			got := d.Counted(counted.Process{Node: tt.node, Boot: tt.boot}, "c", 100)
			if got != (counted.Count{Total: tt.total, Retries: tt.retries}) {
				t.Errorf("%s/%d: %+v, want %d, %d", tt.node, tt.boot, got, tt.total, tt.retries)
			}
		}
		// One client can't keep more processes than there may be.
		for boot := range uint64(100) {
			d.At(100*time.Second, fsmtest.Report("n3", boot, slice(1, 0)))
		}
		if total, _ := d.ClientCounts(0, "c"); total != 32 && total > 10+3+32 {
			t.Errorf("%d requests of 32 processes", total)
		}
	})
}

// TestMassExpiryIsSpread: more keys become due at once than one entry sweeps. The
// rest follow in an order that does not depend on a restart in between (G9).
func TestMassExpiryIsSpread(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("forty thousand keys take a second: not with -short")
	}
	m := fsm.New()
	limit := fsmtest.Keyed("api", fsmtest.Dimension(t, "requests", "1/60s", 5))
	m.Apply(1, &logv1.Entry{Operations: []*logv1.Operation{fsmtest.Apply(limit)}})
	drained(t, m, 40_000)
	restored := fsmtest.Restored(t, m)
	counts := []int{}
	for i := range 3 {
		entry := &logv1.Entry{Stamp: int64(time.Hour) + int64(i)}
		m.Apply(m.Index()+1, entry)
		restored.Apply(restored.Index()+1, entry)
		if m.Hash() != restored.Hash() || m.Hash() != m.Recount() {
			t.Fatalf("entry %d: hash %016x, restored %016x, recount %016x", i, m.Hash(), restored.Hash(), m.Recount())
		}
		counts = append(counts, m.Counts().Keys)
	}
	if want := []int{7232, 0, 0}; !slices.Equal(counts, want) {
		t.Errorf("keys left: %v, want %v", counts, want)
	}
}
