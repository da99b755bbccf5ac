package fsm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/fsmtest"
	"github.com/quorlease/quorlease/fsm/state"
)

// A small oracle: one bucket without classes in billionths of a token, whose
// rate is whole tokens a second, so that nothing is ever rounded.
const token = int64(1e9)

type tally struct {
	at                             time.Duration
	rate, level, burst, debt, most int64
	writtenOff                     int64
}

func (o *tally) advance(at time.Duration) {
	if at <= o.at {
		return
	}
	in := o.rate * int64(at-o.at)
	o.at = at
	paid := min(in, o.debt)
	o.debt -= paid
	o.level = min(o.burst, o.level+in-paid)
}

// book returns the tokens that became debt and those that are beyond it, both
// as the answer says them.
func (o *tally) book(n int64) (writtenOff int64) {
	left := n * token
	taken := min(left, o.level)
	o.level, left = o.level-taken, left-taken
	owed := min(left, o.most-o.debt)
	o.debt, left = o.debt+owed, left-owed
	o.writtenOff += left
	return up(left)
}

func up(units int64) int64 { return (units + token - 1) / token }

// reported is one session's count of the one bucket, and what was sent of it.
type reported struct {
	name string
	// total is what was admitted, heard the highest that arrived, booked the sum
	// of the answers.
	total, heard, booked int64
	// sent are totals under way: they may arrive late, again, or never.
	sent []int64
}

// TestT35ReportsBookTheMaximum: whatever is lost, repeated or overtaken, what was
// booked of a session is the highest total that arrived, and the bucket is what
// a simple sum says.
func TestT35ReportsBookTheMaximum(t *testing.T) {
	t.Parallel()
	t.Run("T35", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) {
			h := newReporting(t, r)
			for range rapid.IntRange(1, 60).Draw(r, "steps") {
				h.step(r)
				h.compare(r)
			}
			// In the end the last of all totals arrives: all is booked.
			for _, s := range h.sessions {
				if s.total > 0 {
					h.deliver(r, s, s.total)
				}
				if s.booked != s.total {
					r.Fatalf("%s: %d booked, %d admitted", s.name, s.booked, s.total)
				}
			}
			h.compare(r)
		})
	})
}

// reporting is a machine with one bucket, beside the oracle.
type reporting struct {
	t        *testing.T
	m        *fsm.Machine
	now      time.Duration
	oracle   tally
	sessions []*reported
}

func newReporting(t *testing.T, r *rapid.T) *reporting {
	rate, burst := rapid.Int64Range(0, 5).Draw(r, "rate"), rapid.Int64Range(1, 20).Draw(r, "burst")
	debt := rapid.Int64Range(0, 30).Draw(r, "max debt")
	h := &reporting{
		t: t, m: fsm.New(),
		oracle: tally{rate: rate, level: burst * token, burst: burst * token, most: debt * token},
		sessions: []*reported{
			{name: "a"}, {name: "b"}, {name: "c"},
		},
	}
	dimension := fsmtest.Dimension(t, "requests", fmt.Sprintf("%d/1s", rate), burst)
	dimension.MaxDebt = debt
	h.apply(fsmtest.Apply(fsmtest.Limit("api", dimension)))
	return h
}

func (h *reporting) apply(op *logv1.Operation) *logv1.Result {
	results, _ := h.m.Apply(h.m.Index()+1, &logv1.Entry{Stamp: int64(h.now), Operations: []*logv1.Operation{op}})
	return results[0]
}

func (h *reporting) step(r *rapid.T) {
	s := rapid.SampledFrom(h.sessions).Draw(r, "session")
	switch rapid.IntRange(0, 6).Draw(r, "what") {
	case 0:
		h.now += time.Duration(rapid.Int64Range(0, int64(4*time.Second)).Draw(r, "pause"))
	case 1, 2:
		s.total += rapid.Int64Range(1, 15).Draw(r, "admitted")
		s.sent = append(s.sent, s.total)
	case 3, 4:
		if len(s.sent) > 0 {
			// It stays among those under way, and may come again.
			h.deliver(r, s, rapid.SampledFrom(s.sent).Draw(r, "report"))
		}
	case 5:
		h.acquire(r, rapid.Int64Range(1, 5).Draw(r, "amount"))
	case 6:
		h.m = fsmtest.Restored(h.t, h.m)
	}
}

func (h *reporting) deliver(r *rapid.T, s *reported, total int64) {
	want := max(0, total-s.heard)
	s.heard = max(s.heard, total)
	h.oracle.advance(h.now)
	owed := up(h.oracle.debt)
	writtenOff := h.oracle.book(want)
	debt := min(up(h.oracle.debt)-owed, want-writtenOff)
	result := h.apply(fsmtest.Admitted(s.name, fsmtest.Count("api", "", "requests", total)))
	b := result.GetAdmitted().GetBookings()[0]
	if b.GetTokens() != want || b.GetDebt() != debt || b.GetWrittenOff() != writtenOff || b.GetGone() {
		r.Fatalf("%s reports %d at %v: %v, want %d with %d of debt and %d written off",
			s.name, total, h.now, b, want, debt, writtenOff)
	}
	s.booked += b.GetTokens()
}

func (h *reporting) acquire(r *rapid.T, n int64) {
	h.oracle.advance(h.now)
	want := h.oracle.debt == 0 && h.oracle.level >= n*token
	if want {
		h.oracle.level -= n * token
	}
	if got := h.apply(one(n)).GetAcquire().GetGranted(); got != want {
		r.Fatalf("acquire of %d at %v: granted %t, want %t", n, h.now, got, want)
	}
}

func (h *reporting) compare(r *rapid.T) {
	h.oracle.advance(h.now)
	in, err := h.m.Inspect(bucket.Instant(h.now), "api", "")
	if err != nil {
		r.Fatal(err)
	}
	if b := in.Buckets[0]; b.Level != h.oracle.level/token || b.Debt != up(h.oracle.debt) {
		r.Fatalf("at %v: level %d, debt %d, want %d units, %d units", h.now, b.Level, b.Debt, h.oracle.level, h.oracle.debt)
	}
	heard := map[string]int64{}
	for _, one := range in.Reports {
		heard[strings.TrimRight(string(one.ID.Session[:]), "\x00")] = one.Tokens
	}
	for _, s := range h.sessions {
		if heard[s.name] != s.heard {
			r.Fatalf("%s: %d is remembered, want %d", s.name, heard[s.name], s.heard)
		}
	}
	if h.m.Hash() != h.m.Recount() {
		r.Fatalf("hash %016x, recount %016x", h.m.Hash(), h.m.Recount())
	}
}

// TestG10ReportsAreBounded: so many are remembered. One more is refused as a
// whole, until those that are there are a day old.
func TestG10ReportsAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		m := fsm.New()
		apply := func(stamp time.Duration, op *logv1.Operation) *logv1.Result {
			results, _ := m.Apply(m.Index()+1, &logv1.Entry{Stamp: int64(stamp), Operations: []*logv1.Operation{op}})
			return results[0]
		}
		apply(0, fsmtest.Apply(fsmtest.Limit("api", fsmtest.Dimension(t, "requests", "1/1s", 10)),
			&logv1.Limit{Name: "free", Unlimited: true, Target: 10_000, MaxKeys: 1, Lease: int64(time.Second)}))
		report := func(at time.Duration, session string, from, to int) *logv1.Result {
			op := fsmtest.Admitted(session)
			for i := from; i < to; i++ {
				op.GetReportAdmitted().Counts = append(op.GetReportAdmitted().Counts,
					fsmtest.Count("free", "", fmt.Sprint("d", i), 1))
			}
			return apply(at, op)
		}
		for from := 0; from < state.MaxReports-1; from += 64 {
			if got := report(time.Second, "s", from, min(from+64, state.MaxReports-1)); got.GetAdmitted() == nil {
				t.Fatal(got)
			}
		}
		before := m.Hash()
		if got := report(time.Second, "t", 0, 2); got.GetRefusal().GetCause() != logv1.Refusal_CAUSE_REPORT_LIMIT {
			t.Fatalf("two more where there is room for one: %v", got)
		}
		if m.Hash() != before {
			t.Errorf("the refusal changed something")
		}
		// One has room; who is known needs none; what is gone takes none.
		for _, got := range []*logv1.Result{
			report(time.Second, "t", 0, 1), report(time.Second, "s", 0, 64),
			apply(time.Second, fsmtest.Admitted("u", fsmtest.Count("nothing", "", "requests", 1))),
		} {
			if got.GetAdmitted() == nil {
				t.Errorf("%v, want a booking", got)
			}
		}
		if got := m.Counts().Reports; got != state.MaxReports {
			t.Errorf("%d reports, want %d", got, state.MaxReports)
		}
		if in, err := m.Inspect(0, "free", ""); err != nil || len(in.Reports) != 100 {
			t.Errorf("%d reports are shown, %v, want 100", len(in.Reports), err)
		}
		forgottenInOrder(t, m, time.Second+24*time.Hour)
	})
}

// forgottenInOrder lets all reports become old at once: each entry forgets a bounded
// number, the same ones on a node that was restored.
func forgottenInOrder(t *testing.T, m *fsm.Machine, at time.Duration) {
	t.Helper()
	restored := fsmtest.Restored(t, m)
	var left []int
	for i := range 5 {
		entry := &logv1.Entry{Stamp: int64(at) + int64(i) - 1}
		m.Apply(m.Index()+1, entry)
		restored.Apply(restored.Index()+1, entry)
		if m.Hash() != restored.Hash() || m.Hash() != m.Recount() {
			t.Fatalf("entry %d: hash %016x, restored %016x, recount %016x", i, m.Hash(), restored.Hash(), m.Recount())
		}
		left = append(left, m.Counts().Reports)
	}
	if want := "[100000 67232 34464 1696 0]"; fmt.Sprint(left) != want {
		t.Errorf("reports left: %v, want %s", left, want)
	}
}
