package usage

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/metrics"
	"github.com/quorlease/quorlease/plan"
)

// TestAClockThatJumps: what was counted while a clock was wrong is in the hour that it
// said, nothing that was counted before and after is elsewhere or gone, and nothing is
// forgotten because of it.
func TestAClockThatJumps(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "usage")
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		clocked := func() *Book {
			b, err := Open(Config{
				Dir: dir, Node: "n1", Metrics: metrics.New(), Logger: hclog.NewNullLogger(),
				Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
			})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		b := clocked()
		old := b.files.path(b.at - 24)
		if err := os.WriteFile(old, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		count := func(client string) { b.Decided(b.config.Now(), acquire(client, "gpt", 1), "", granted(true)) }
		count("before")
		settled := func() {
			b.Settled(&logv1.Settle{Used: []*logv1.Usage{{Dimension: "tokens"}}}, &logv1.LeaseResult{
				Settlements: []*logv1.Settlement{{Limit: "gpt", Dimension: "tokens", Amount: 10, Used: 12}},
			})
		}
		settled()
		pass(writeEvery)
		count("soon")
		const jump = 60 * 24 * time.Hour
		ahead.Store(int64(jump))
		count("wrong")
		pass(writeEvery)
		ahead.Store(0)
		count("after")
		settled()
		want := []string{"after gpt/tokens 1+0- 1+0-", "before gpt/tokens 1+0- 1+0-", "soon gpt/tokens 1+0- 1+0-"}
		expect(t, "before it is written", lines(b, asking(ByClient, 1, 10)), want...)
		pass(writeEvery)
		expect(t, "written", lines(b, asking(ByClient, 1, 10)), want...)
		off := b.Ask(t.Context(), asking(ByLimit, 1, 10), nil, nil).Rows[0].Estimates
		if diff := cmp.Diff(&plan.Tally{2000: 2}, off); diff != "" {
			t.Errorf("estimates (-want +got)\n%s", diff)
		}
		if _, err := os.Stat(old); err != nil {
			t.Errorf("a book is forgotten because of a clock that was wrong for a minute: %v", err)
		}
		// Less than an hour back is the same hour still.
		pass(time.Hour)
		count("next")
		ahead.Store(-int64(30 * time.Minute))
		count("back")
		ahead.Store(0)
		expect(t, "half an hour back", lines(b, asking(ByClient, 1, 10)), "back gpt/tokens 1+0- 1+0-",
			"next gpt/tokens 1+0- 1+0-")
		// The hour that it said comes, and has both.
		ahead.Store(int64(jump - 61*time.Minute))
		count("again")
		pass(writeEvery)
		expect(t, "the hour comes", lines(b, asking(ByClient, 1, 10)), "again gpt/tokens 1+0- 1+0-",
			"wrong gpt/tokens 1+0- 1+0-")
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		b = clocked()
		expect(t, "after a restart", lines(b, asking(ByClient, 1, 10)), "again gpt/tokens 1+0- 1+0-",
			"wrong gpt/tokens 1+0- 1+0-")
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestAnHourThatComesBack: who reads an hour that had ended reads what nobody counts in, also
// when the clock goes back to it.
func TestAnHourThatComesBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "usage")
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		b, err := Open(Config{
			Dir: dir, Node: "n1", Metrics: metrics.New(), Logger: hclog.NewNullLogger(), Now: func() time.Time { return now },
		})
		if err != nil {
			t.Fatal(err)
		}
		count := func(at time.Time) { b.Decided(at, acquire("billing", "gpt", 1), "", granted(true)) }
		count(now)
		count(now.Add(3 * time.Hour))
		read := b.closed[hourOf(now)]
		count(now)
		if b.book == read {
			t.Error("it is counted in what somebody may read")
		}
		// It ends again while it is written.
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
