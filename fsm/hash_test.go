package fsm_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// history is the log of a seeded world, as bytes. From wholeSeeds on it is one of the
// whole model, and from escrowSeeds on one with escrow.
func history(t testing.TB, seed uint64, entries int) [][]byte {
	t.Helper()
	world := fsmtest.Seeded(seed)
	world.Feedback, world.Whole = seed >= wholeSeeds, seed >= wholeSeeds
	world.Escrow = seed >= escrowSeeds
	log := make([][]byte, entries)
	for i := range log {
		data, err := fsm.EncodeEntry(world.Entry())
		if err != nil {
			t.Fatalf("seed=%d entry %d: %v", seed, i, err)
		}
		log[i] = data
	}
	return log
}

const wholeSeeds, escrowSeeds = 5000, 10_000

func replay(t testing.TB, m *fsm.Machine, log [][]byte) []*logv1.Result {
	t.Helper()
	var results []*logv1.Result
	for _, data := range log {
		entry, err := fsm.DecodeEntry(data)
		if err != nil {
			t.Fatal(err)
		}
		answers, _ := m.Apply(m.Index()+1, entry)
		results = append(results, answers...)
	}
	return results
}

// TestG9SameLogSameState replays one log in one go, in pieces, and through
// snapshots in the middle: the state and every answer are the same.
func TestG9SameLogSameState(t *testing.T) {
	t.Parallel()
	for i := range uint64(30) {
		seed := i%10 + i/10*wholeSeeds
		t.Run(fmt.Sprintf("G9_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			log := history(t, seed, 400)
			whole := fsm.New()
			want := replay(t, whole, log)
			again := fsm.New()
			same(t, want, replay(t, again, log))
			pieces := fsm.New()
			var got []*logv1.Result
			for start := 0; start < len(log); start += 37 {
				got = append(got, replay(t, pieces, log[start:min(start+37, len(log))])...)
				pieces = fsmtest.Restored(t, pieces)
			}
			same(t, want, got)
			for name, m := range map[string]*fsm.Machine{"in one go": again, "through snapshots": pieces} {
				if m.Hash() != whole.Hash() || m.Index() != whole.Index() || m.Now() != whole.Now() {
					t.Errorf("%s: hash %016x at %d, want %016x at %d", name, m.Hash(), m.Index(), whole.Hash(), whole.Index())
				}
			}
		})
	}
}

func same(t *testing.T, want, got []*logv1.Result) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d results, want %d", len(got), len(want))
	}
	for i := range want {
		if fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
			t.Fatalf("result %d is\n%v, want\n%v", i, got[i], want[i])
		}
	}
}

var updateGolden = flag.Bool("update-golden", false, "accept the state hashes of this program")

// TestG9GoldenHash compares state hashes with those that were written down, so
// that another architecture, or a change that would make old logs mean something
// else, is found. A new hash is a new meaning of the log: think of clusters
// that run both programs.
func TestG9GoldenHash(t *testing.T) {
	t.Parallel()
	const file = "testdata/golden/hashes"
	var out bytes.Buffer
	for i := range uint64(24) {
		seed := 1000 + i%8 + i/8*wholeSeeds
		m := fsm.New()
		replay(t, m, history(t, seed, 500))
		fmt.Fprintf(&out, "%d %016x\n", seed, m.Hash())
	}
	if *updateGolden {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("G9", func(t *testing.T) {
		if got := strings.TrimSpace(out.String()); got != strings.TrimSpace(string(want)) {
			t.Errorf("seed and hash:\n%s\nwant\n%s", got, want)
		}
	})
}

// TestG9RandomHistories applies histories beside a machine that is restored
// after every entry.
func TestG9RandomHistories(t *testing.T) {
	t.Parallel()
	seeds := uint64(12)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("G9_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			d := fsmtest.WithShadow(t)
			world := fsmtest.Seeded(seed)
			world.Whole, world.Escrow = seed%2 == 1, seed%3 == 2
			for range 200 {
				d.Entry(world.Entry())
			}
			c, caps := d.Counts(), d.Caps()
			if int64(c.Leases) > caps.GetLeases() || int64(c.Limits) > caps.GetLimits() ||
				int64(c.Clients) > caps.GetClients() || int64(c.Keys) > caps.GetKeys()+int64(c.Limits) {
				t.Errorf("G10: %+v is beyond %v", c, caps)
			}
		})
	}
}
