package usage

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorlease/quorlease/cluster/metrics"
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
		count := func(client string) { b.Decided(acquire(client, "gpt", 1), "", granted(true)) }
		count("before")
		pass(writeEvery)
		count("soon")
		const jump = 60 * 24 * time.Hour
		ahead.Store(int64(jump))
		count("wrong")
		pass(writeEvery)
		ahead.Store(0)
		count("after")
		want := []string{"after gpt/tokens 1+0- 1+0-", "before gpt/tokens 1+0- 1+0-", "soon gpt/tokens 1+0- 1+0-"}
		expect(t, "before it is written", lines(b, Query{ByClient, 1, 10}), want...)
		pass(writeEvery)
		expect(t, "written", lines(b, Query{ByClient, 1, 10}), want...)
		if _, err := os.Stat(old); err != nil {
			t.Errorf("a book is forgotten because of a clock that was wrong for a minute: %v", err)
		}
		// Less than an hour back is the same hour still.
		pass(time.Hour)
		count("next")
		ahead.Store(-int64(30 * time.Minute))
		count("back")
		ahead.Store(0)
		expect(t, "half an hour back", lines(b, Query{ByClient, 1, 10}), "back gpt/tokens 1+0- 1+0-",
			"next gpt/tokens 1+0- 1+0-")
		// The hour that it said comes, and has both.
		ahead.Store(int64(jump - 61*time.Minute))
		count("again")
		pass(writeEvery)
		expect(t, "the hour comes", lines(b, Query{ByClient, 1, 10}), "again gpt/tokens 1+0- 1+0-",
			"wrong gpt/tokens 1+0- 1+0-")
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		b = clocked()
		expect(t, "after a restart", lines(b, Query{ByClient, 1, 10}), "again gpt/tokens 1+0- 1+0-",
			"wrong gpt/tokens 1+0- 1+0-")
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}
