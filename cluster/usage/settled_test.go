package usage

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/plan"
)

// settle lets a book see a lease of tokens settled.
func settle(b *Book, limit string, charged, used int64) {
	b.Settled(
		&logv1.Settle{Used: []*logv1.Usage{{Dimension: "tokens", Used: used}}},
		&logv1.LeaseResult{Settlements: []*logv1.Settlement{
			{Limit: limit, Dimension: "tokens", Amount: charged, Used: used},
			// Nothing was said of it.
			{Limit: limit, Dimension: "requests", Amount: 1, Used: 1},
		}},
	)
}

// estimatesBy is what a book answers of limits, with those of other nodes.
func estimatesBy(t *testing.T, b *Book, others ...*Book) map[string]plan.Errors {
	t.Helper()
	var list []Node
	for i := range others {
		list = append(list, Node{Address: fmt.Sprint(i)})
	}
	answer := b.Ask(t.Context(), asking(ByLimit, 2, TopMost), list, func(address string) (peerv1.PeerClient, error) {
		return peer{book: others[address[0]-'0']}, nil
	})
	found := make(map[string]plan.Errors)
	for _, row := range answer.Rows {
		if row.Estimates != nil {
			found[row.Name+"/"+row.Dimension] = row.Estimates.Errors()
		}
	}
	return found
}

// TestEstimates: what three nodes saw settled gives the margin that a file of the same
// tasks gives, rounded up above 10 %.
func TestEstimates(t *testing.T) {
	t.Parallel()
	t.Run("S3-36", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(rt *rapid.T) {
			books := []*Book{open(t, t.TempDir()), open(t, t.TempDir()), open(t, t.TempDir())}
			defer func() {
				for _, b := range books {
					_ = b.Close()
				}
			}()
			tasks := drawTasks(rt)
			for i, task := range tasks {
				settle(books[i%len(books)], "gpt", task.Charged, task.Used)
			}
			got := estimatesBy(t, books[0], books[1:]...)["gpt/tokens"]
			if got.Tasks != int64(len(tasks)) {
				rt.Fatalf("%d tasks, want %d", got.Tasks, len(tasks))
			}
			for percent, bp := range map[int]int64{50: got.P50, 90: got.P90, 99: got.P99, 100: got.Most} {
				checkRank(rt, tasks, percent, bp)
			}
		})
	})
}

func drawTasks(t *rapid.T) (tasks []plan.Settled) {
	worst := rapid.SampledFrom([]int64{1050, 1500, 2500, 90_000}).Draw(t, "worst")
	for range rapid.IntRange(1, 250).Draw(t, "tasks") {
		charged := rapid.Int64Range(1, 1000).Draw(t, "charged")
		tasks = append(tasks, plan.Settled{
			Charged: charged, Used: rapid.Int64Range(0, charged*worst/1000).Draw(t, "used"),
		})
	}
	return tasks
}

// checkRank works out in fractions which error so many of a hundred stay within, and
// wants it to be rounded up as it is said to be.
func checkRank(t *rapid.T, tasks []plan.Settled, percent int, bp int64) {
	over := make([]*big.Rat, len(tasks))
	for i, task := range tasks {
		over[i] = big.NewRat(max(0, task.Used-task.Charged)*10_000, task.Charged)
	}
	slices.SortFunc(over, (*big.Rat).Cmp)
	exact := over[0]
	for i, one := range over {
		if (i+1)*100 >= percent*len(over) {
			exact = one
			break
		}
	}
	most := new(big.Rat).Add(exact, big.NewRat(1, 1))
	switch {
	case exact.Cmp(big.NewRat(10_000, 1)) > 0:
		most.Mul(exact, big.NewRat(2, 1))
	case exact.Cmp(big.NewRat(1000, 1)) > 0:
		most.Add(exact, big.NewRat(10, 1))
	}
	if got := big.NewRat(bp, 1); got.Cmp(exact) < 0 || got.Cmp(most) >= 0 && got.Cmp(exact) != 0 {
		t.Fatalf("%d of 100 of %d tasks: %d hundredths of a percent, want from %s and below %s",
			percent, len(tasks), bp, exact.FloatString(3), most.FloatString(3))
	}
}

// TestEstimatesAreKept: over a restart, for the hours that somebody asks for; and nothing
// that was not measured is one.
func TestEstimatesAreKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "usage")
	synctest.Test(t, func(t *testing.T) {
		b := open(t, dir)
		settle(b, "gpt", 1000, 1080)
		settle(b, "gpt", 1000, 500)
		used := []*logv1.Usage{{Dimension: "tokens", Used: 5}}
		one := []*logv1.Settlement{{Limit: "gpt", Dimension: "tokens", Amount: 1, Used: 5}}
		b.Settled(&logv1.Settle{Used: used}, &logv1.LeaseResult{Settlements: one, Repeated: true})
		b.Settled(&logv1.Settle{Used: used, Progress: true}, &logv1.LeaseResult{Settlements: one})
		b.Settled(&logv1.Settle{Used: used}, nil)
		b.Settled(&logv1.Settle{}, &logv1.LeaseResult{Settlements: one})
		used = []*logv1.Usage{{Limit: "other", Dimension: "tokens", Used: 5}}
		b.Settled(&logv1.Settle{Used: used}, &logv1.LeaseResult{Settlements: one})
		b.Decided(time.Now(), acquire("chat", "gpt", 1000), "red", granted(true))
		want := plan.Errors{Tasks: 2, P50: 0, P90: 800, P99: 800, Most: 800}
		if got := estimatesBy(t, b); len(got) != 1 || got["gpt/tokens"] != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		expect(t, "who asked has none", lines(b, asking(ByClient, 1, 10)), "chat gpt/tokens 1+0- 1000+0-")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		b = open(t, dir)
		settle(b, "gpt", 1000, 1010)
		want = plan.Errors{Tasks: 3, P50: 100, P90: 800, P99: 800, Most: 800}
		if got := estimatesBy(t, b); got["gpt/tokens"] != want {
			t.Errorf("after a restart: %+v, want %+v", got, want)
		}
		pass(2 * time.Hour)
		if got := estimatesBy(t, b); len(got) != 0 {
			t.Errorf("hours later: %+v", got)
		}
		if err := errors.Join(b.Close(), (*Book)(nil).Close()); err != nil {
			t.Error(err)
		}
	})
	(*Book)(nil).Settled(nil, nil)
}

// TestEstimatesAreBounded: whatever is said to be used, and of however many limits.
func TestEstimatesAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		b := open(t, t.TempDir())
		for i := range int64(200_000) {
			settle(b, "gpt", 20_000, 20_000+i)
		}
		for shift := range 54 {
			settle(b, "gpt", 1, 1<<shift)
		}
		settle(b, "gpt", 1, math.MaxInt64)
		if n := len(*b.book.names.estimates("gpt", "tokens").Estimates); n > 1960 {
			t.Errorf("%d errors are told apart", n)
		}
		for i := range 2 * settledMost {
			settle(b, fmt.Sprint("limit-", i), 10, 11)
		}
		if got := estimatesBy(t, b); len(got) != settledMost {
			t.Errorf("of %d dimensions, want %d", len(got), settledMost)
		}
		answer := b.Ask(t.Context(), asking(ByLimit, 1, 1), nil, nil)
		for _, row := range answer.Rows {
			if row.Other && row.Estimates != nil {
				t.Errorf("%+v of many limits", row.Estimates)
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}
