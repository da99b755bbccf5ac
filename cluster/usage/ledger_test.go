package usage

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// grant lets a book see an acquire of a team's, from its own limit and another one.
func grant(b *Book, team string, tokens int64) {
	b.Decided(b.config.Now(), &logv1.Acquire{Client: "gateway", Charges: []*logv1.Charge{
		{Limit: "team", Key: team, Dimension: "tokens", Amount: tokens},
		{Limit: "provider", Dimension: "tokens", Amount: tokens},
	}}, "", granted(true))
}

// end lets a book see how a lease of a team's has ended.
func end(b *Book, team string, returned, extra int64) {
	const charged = 1000
	used := charged - returned + extra
	result := &logv1.LeaseResult{State: logv1.LeaseState_LEASE_STATE_SETTLED, Settlements: []*logv1.Settlement{
		{Limit: "team", Key: team, Dimension: "tokens", Amount: charged, Used: used},
		{Limit: "provider", Dimension: "tokens", Amount: charged, Used: used},
	}}
	if extra == 0 {
		b.Ended(result)
	} else {
		b.Settled(&logv1.Settle{}, result)
	}
	repeated := &logv1.LeaseResult{Repeated: true, State: result.GetState(), Settlements: result.GetSettlements()}
	b.Ended(repeated)
	b.Settled(&logv1.Settle{}, repeated)
	b.Settled(&logv1.Settle{Progress: true}, result)
}

// ledger are the rows that books answer, one a line.
func ledger(t *testing.T, b *Book, q Query, others ...*Book) (list []string) {
	t.Helper()
	var nodes []Node
	for i := range others {
		nodes = append(nodes, Node{Address: fmt.Sprint(i)})
	}
	answer := b.Ask(t.Context(), q, nodes, func(address string) (peerv1.PeerClient, error) {
		return peer{book: others[address[0]-'0']}, nil
	})
	for _, r := range answer.Rows {
		list = append(list, fmt.Sprintf("%s %s %d-%d+%d %t", r.Name, r.Limit, r.Granted, r.Returned, r.Extra, r.Other))
	}
	return append(list, answer.From.UTC().Format(hourLayout)+" "+answer.To.UTC().Format(time.RFC3339))
}

// TestUsedIsWhatWasUsed: of leases of the state machine, whatever fitted into the bucket
// again and however often they were released.
func TestUsedIsWhatWasUsed(t *testing.T) {
	t.Parallel()
	t.Run("S1-50_used_is_what_was_used", func(t *testing.T) {
		t.Parallel()
		b, d := open(t, t.TempDir()), fsmtest.New(t)
		tokens := fsmtest.Dimension(t, "tokens", "1000/1s", 10_000)
		d.At(0, fsmtest.Apply(fsmtest.Keyed("team", tokens), fsmtest.Slots("running", 9)))
		do := func(at time.Duration, op *logv1.Operation) *logv1.LeaseResult {
			t.Helper()
			result := d.At(at, op)[0]
			if acquire := op.GetAcquire(); acquire != nil {
				b.Decided(b.config.Now(), acquire, "", result.GetAcquire())
			}
			b.Answered(op, result.GetLease())
			return result.GetLease()
		}
		take := func(at time.Duration, id, team string) {
			t.Helper()
			do(at, fsmtest.Track(id, fsmtest.Charge("team", team, "tokens", 1000), fsmtest.Charge("running", team, "slots", 1)))
		}
		// The bucket is full again before they are settled and released.
		take(0, "less", "calm")
		take(0, "none", "calm")
		if back := do(4*time.Second, fsmtest.Settle("less", "tokens", 200)).GetSettlements()[1]; back.GetRefunded() != 0 {
			t.Errorf("%v: the bucket had room", back)
		}
		do(4*time.Second, fsmtest.Release("none"))
		do(4*time.Second, fsmtest.Release("none"))
		// It runs out, and has used more than it was granted.
		take(5*time.Second, "late", "late")
		more := fsmtest.Settle("late", "tokens", 1300)
		more.GetSettle().Progress = true
		do(6*time.Second, more)
		for range 3 {
			if end := do(20*time.Second, fsmtest.Release("late")); end.GetState() != logv1.LeaseState_LEASE_STATE_EXPIRED {
				t.Errorf("%v has not run out", end)
			}
		}
		rows := func() []string { return ledger(t, b, Query{By: ByKey, Hours: 1, Top: 10})[:4] }
		calm := []string{"calm team 2000-1800+0 false", "late team 1000-0+0 false"}
		slots := []string{"calm running 2-0+0 false", "late running 1-0+0 false"}
		expect(t, "run out", rows(), append(calm, slots...)...)
		do(21*time.Second, fsmtest.Settle("late", "tokens", 1400))
		do(21*time.Second, fsmtest.Settle("late", "tokens", 1400))
		calm[1] = "late team 1000-0+400 false"
		expect(t, "settled late", rows(), append(calm, slots...)...)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestLedger: what each team was granted, what came back of it and what it used on top, in
// a month that is over, of all nodes and over a restart.
func TestLedger(t *testing.T) {
	t.Parallel()
	t.Run("S1-50_a_month_of_a_team", func(t *testing.T) {
		t.Parallel()
		dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
		synctest.Test(t, func(t *testing.T) {
			a, b := open(t, dirs[0]), open(t, dirs[1])
			first := time.Now().UTC()
			grant(a, "red", 1000)
			grant(b, "red", 500)
			grant(b, "blue", 70)
			// It is settled where it was not granted, an hour later.
			pass(time.Hour)
			end(b, "red", 400, 0)
			end(a, "red", 0, 30)
			end(a, "blue", 0, 0)
			pass(30 * 24 * time.Hour)
			grant(a, "red", 9)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			b = open(t, dirs[1])
			month := Query{By: ByKey, Hours: 30 * 24, Top: 10, End: hourOf(first) + 30*24, Limit: "team"}
			want := []string{
				"red team 1500-400+30 false", "blue team 70-0+0 false", "2000-01-01T00 2000-01-31T00:00:00Z",
			}
			check := func(what string, q Query, want ...string) {
				t.Helper()
				if diff := cmp.Diff(want, ledger(t, a, q, b)); diff != "" {
					t.Errorf("%s (-want +got)\n%s", what, diff)
				}
			}
			check("the month", month, want...)
			hour := month
			hour.Hours, hour.End = 1, hourOf(first)+2
			check("an hour of it", hour, "red team 0-400+30 false", "2000-01-01T01 2000-01-01T02:00:00Z")
			all := month
			all.Limit = ""
			check("keys alone", all, want...)
			all.By = ByLimit
			check("by limit", all, "provider provider 1570-400+30 false", "team team 1570-400+30 false", want[2])
			now := Query{By: ByKey, Hours: 1, Top: 10}
			check("now", now, "red team 9-0+0 false", "2000-01-31T01 2000-01-31T01:00:00Z")
			ahead := now
			ahead.End = hourOf(first) + 99*24
			check("what is to come", ahead, "red team 9-0+0 false", "2000-01-31T01 2000-01-31T01:00:00Z")
			pass(40 * 24 * time.Hour)
			check("what is forgotten", month, "2000-01-09T02 2000-01-31T00:00:00Z")
			month.Hours, month.End = 24, hourOf(first)+24
			if gone := a.Ask(t.Context(), month, []Node{{"n9", "9"}}, nil); gone.From.Before(gone.To) || gone.Missing != nil {
				t.Errorf("a period that is gone: %+v", gone)
			}
			if err := errors.Join(a.Close(), b.Close()); err != nil {
				t.Error(err)
			}
		})
		(*Book)(nil).Ended(nil)
	})
	t.Run("G10_keys_leave_the_names", func(t *testing.T) {
		t.Parallel()
		b := open(t, t.TempDir())
		for i := range 3 * entriesMost {
			grant(b, fmt.Sprint("team-", i), 1)
			end(b, fmt.Sprint("team-", i), 1, 0)
		}
		b.Decided(time.Now(), acquire("chat", "gpt", 5), "red", granted(true))
		if n := len(b.book.keys); n > entriesMost+othersMost {
			t.Errorf("%d keys", n)
		}
		rows := ledger(t, b, Query{By: ByKey, Hours: 1, Top: 1, Limit: "team"})
		if want := fmt.Sprintf(" team %d-%d+0 true", 3*entriesMost-1, 3*entriesMost-1); rows[1] != want {
			t.Errorf("%q, want %q", rows[1], want)
		}
		expect(t, "by team", lines(b, Query{By: ByTeam, Hours: 1, Top: 10}), " provider/tokens 6000+0- 6000+0-",
			" team/tokens 6000+0- 6000+0-", "red gpt/tokens 1+0- 5+0-")
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}
