package fsm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// walked are the keys that a walk to its end finds, each as a line, and how many
// steps it took.
func walked(t *testing.T, m *fsm.Machine, walk *fsm.KeyWalk) (lines []string, steps int) {
	t.Helper()
	for done := false; !done; steps++ {
		var err error
		if done, err = walk.Step(m, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range walk.Found() {
		lines = append(lines, fmt.Sprintf("%s %s %d-%d/%d %dppm %d", v.Key, v.Dimension, v.Level, v.Debt, v.Burst,
			v.Left, v.OpenLeases))
	}
	return lines, steps
}

// charged is a machine with two limits of so many keys, each charged by chance, and the
// keys of the first as a walk should have them.
func charged(t *testing.T, keys int) (d *fsmtest.Driver, want []string) {
	t.Helper()
	d = fsmtest.New(t)
	limit := fsmtest.Keyed("api",
		fsmtest.Dimension(t, "requests", "1/1h", 1000), fsmtest.Dimension(t, "tokens", "1/1h", 300))
	d.At(0, fsmtest.Apply(limit, fsmtest.Keyed("other", fsmtest.Dimension(t, "requests", "1/1h", 10))))
	random := rand.New(rand.NewPCG(1, 2))
	type row struct {
		left, leases int
		key, line    string
	}
	var rows []row
	var operations []*logv1.Operation
	for i := range keys {
		key := fmt.Sprintf("%s-%d", []string{"big", "trial"}[i%2], i)
		requests, tokens, leases := 1+random.IntN(1000), 1+random.IntN(300), random.IntN(2)
		ask := fsmtest.Acquire
		if leases > 0 {
			ask = fsmtest.Track
		}
		operations = append(operations,
			ask(key, fsmtest.Charge("api", key, "requests", int64(requests)),
				fsmtest.Charge("api", key, "tokens", int64(tokens))),
			fsmtest.Acquire("", fsmtest.Charge("other", key, "requests", 9)))
		left, line := (1000-requests)*1000, fmt.Sprintf("%s requests %d-0/1000 %dppm %d", key, 1000-requests,
			(1000-requests)*1000, leases)
		if of := (300 - tokens) * 1_000_000 / 300; of < left {
			left, line = of, fmt.Sprintf("%s tokens %d-0/300 %dppm %d", key, 300-tokens, of, leases)
		}
		rows = append(rows, row{left, leases, key, line})
	}
	for part := range slices.Chunk(operations, 500) {
		d.At(0, part...)
	}
	slices.SortFunc(rows, func(a, b row) int {
		switch {
		case a.left != b.left:
			return a.left - b.left
		case a.leases != b.leases:
			return b.leases - a.leases
		}
		return strings.Compare(a.key, b.key)
	})
	for _, r := range rows {
		want = append(want, r.line)
	}
	return d, want
}

// TestMostSpentKeys: the walk finds what looking at every key would, however many there
// are, a part at a time.
func TestMostSpentKeys(t *testing.T) {
	t.Parallel()
	for _, keys := range []int{0, 7, 400, 3000} {
		t.Run(fmt.Sprint(keys), func(t *testing.T) {
			t.Parallel()
			d, want := charged(t, keys)
			for _, top := range []int{1, 20, 1000} {
				walk := fsm.NewKeyWalk("api", "", top)
				got, steps := walked(t, d.Machine, walk)
				if diff := cmp.Diff(want[:min(top, keys)], got); diff != "" && keys > 0 {
					t.Errorf("top %d (-want +got)\n%s", top, diff)
				}
				if walk.Total != keys || walk.Matching != keys || keys == 3000 && steps < 5 || keys <= 400 && steps != 1 {
					t.Errorf("top %d: %d of %d keys in %d steps", top, walk.Matching, walk.Total, steps)
				}
			}
			walk := fsm.NewKeyWalk("api", "trial-", 5)
			got, _ := walked(t, d.Machine, walk)
			if walk.Total != keys || walk.Matching != keys/2 || len(got) != min(5, keys/2) {
				t.Errorf("%d of %d keys begin with the prefix, %v", walk.Matching, walk.Total, got)
			}
			for _, line := range got {
				if !strings.HasPrefix(line, "trial-") {
					t.Error(line)
				}
			}
		})
	}
}

// TestKeysWhileThingsChange: a walk begins again where the state is another one, and ends
// where the limit goes.
func TestKeysWhileThingsChange(t *testing.T) {
	t.Parallel()
	d, want := charged(t, 3000)
	walk := fsm.NewKeyWalk("api", "", 20)
	if done, err := walk.Step(d.Machine, 0); done || err != nil {
		t.Fatal(done, err)
	}
	restored := fsmtest.Restored(t, d.Machine)
	got, _ := walked(t, restored, walk)
	if diff := cmp.Diff(want[:20], got); diff != "" || walk.Total != 3000 {
		t.Errorf("%d keys after a restore (-want +got)\n%s", walk.Total, diff)
	}
	walk = fsm.NewKeyWalk("api", "", 20)
	if _, err := walk.Step(d.Machine, 0); err != nil {
		t.Fatal(err)
	}
	d.At(0, fsmtest.Operation(&logv1.ApplyLimits{Delete: []string{"api"}}))
	if _, err := walk.Step(d.Machine, 0); err == nil || !strings.Contains(err.Error(), "no such limit") {
		t.Errorf("got %v, want that there is no such limit", err)
	}
}

// TestWhatAKeyShows: debt, slots, overrides and what feedback did.
func TestWhatAKeyShows(t *testing.T) {
	t.Parallel()
	d := fsmtest.New(t)
	limit := fsmtest.Keyed("api", fsmtest.Dimension(t, "tokens", "1/1h", 100))
	limit.Dimensions[0].MaxDebt = 50
	d.At(0, fsmtest.Apply(limit, fsmtest.Slots("gate", 4)))
	for _, op := range []*logv1.Operation{
		fsmtest.Track("x", fsmtest.Charge("api", "debtor", "tokens", 90)), fsmtest.Settle("x", "tokens", 130),
		fsmtest.Acquire("", fsmtest.Charge("api", "half", "tokens", 50)),
		fsmtest.Track("y", fsmtest.Charge("gate", "a", "slots", 3)),
	} {
		if refusal := d.At(time.Second, op)[0].GetRefusal(); refusal != nil {
			t.Fatal(refusal)
		}
	}
	got, _ := walked(t, d.Machine, fsm.NewKeyWalk("api", "", 20))
	want := []string{"debtor tokens 0-30/100 -300000ppm 0", "half tokens 50-0/100 500000ppm 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got, _ = walked(t, d.Machine, fsm.NewKeyWalk("gate", "", 20))
	if diff := cmp.Diff([]string{"a slots 1-0/4 250000ppm 1"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name, part := range map[string]string{"nope": "no such limit", "-": "no name of a limit"} {
		if _, err := fsm.NewKeyWalk(name, "", 1).Step(d.Machine, bucket.Instant(0)); err == nil ||
			!strings.Contains(err.Error(), part) {
			t.Errorf("limit %q: %v, want %q", name, err, part)
		}
	}
}
