package fsm_test

import (
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// wholeLimits are one of each kind.
func wholeLimits(tb testing.TB) []*logv1.Limit {
	tb.Helper()
	rate := fsmtest.Keyed("api", fsmtest.Dimension(tb, "requests", "1000/1s", 1000))
	rate.Overrides = []*logv1.Override{{
		Value: "key-1", Prefix: true, Dimensions: []*logv1.Dimension{fsmtest.Dimension(tb, "requests", "500/1s", 500)},
	}}
	quota := fsmtest.Keyed("month", &logv1.Dimension{Name: "tokens", Interval: 1, Burst: 1 << 40, MaxOpen: 1 << 40})
	quota.Kind = logv1.Kind_KIND_QUOTA
	quota.Calendar = &logv1.Calendar{Period: logv1.Calendar_PERIOD_MONTH, Timezone: "UTC"}
	quota.Warn = []int64{8_000}
	return []*logv1.Limit{rate, quota, fsmtest.Slots("gate", 64)}
}

// wholeEntry is an entry of 512 operations: slots that are taken, renewed, given back and
// lost with their session, beside charges of a rate and of a quota, of a thousand keys.
func wholeEntry(round int, stamp int64) *logv1.Entry {
	entry := &logv1.Entry{Stamp: stamp}
	for i := range 512 {
		id := fmt.Sprintf("%d.%d", round, i-i%8)
		key := keyName((round*7919 + i*31) % 1000)
		session := fsmtest.LeaseID(fmt.Sprint("s", i%50))
		var op *logv1.Operation
		switch i % 8 {
		case 0:
			op = fsmtest.Operation(&logv1.Acquire{
				LeaseId: fsmtest.LeaseID(id), Track: true, Session: session, Connection: uint64(round),
				Charges: []*logv1.Charge{
					fsmtest.Charge("api", key, "requests", 1), fsmtest.Charge("gate", keyName(i%20), "slots", 1),
					fsmtest.Charge("month", key, "tokens", 100),
				},
			})
		case 1:
			op = fsmtest.Renew(id, 1, 10*time.Second)
		case 2:
			op = fsmtest.Settle(id, "tokens", 50)
		case 3:
			op = fsmtest.Operation(&logv1.EndSession{Session: session, Connection: uint64(round), Grace: int64(time.Second)})
		case 4:
			op = fsmtest.Track(fmt.Sprintf("%d.%d", round, i), fsmtest.Charge("gate", keyName(i%20), "slots", 1))
		default:
			c := fsmtest.Charge("api", key, "requests", 1)
			c.Keep = 10
			op = fsmtest.Acquire("", c)
		}
		entry.Operations = append(entry.Operations, op)
	}
	return entry
}

// BenchmarkApplyWhole applies entries of 512 operations of the whole limit model.
func BenchmarkApplyWhole(b *testing.B) {
	m := fsm.New()
	m.Apply(1, &logv1.Entry{Operations: []*logv1.Operation{fsmtest.Apply(wholeLimits(b)...)}})
	// A lap of them takes as long as a lease lives.
	entries := make([]*logv1.Entry, 64)
	for i := range entries {
		entries[i] = wholeEntry(i, 0)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		entry := entries[i%len(entries)]
		entry.Stamp = int64(i) * int64(100*time.Millisecond)
		m.Apply(m.Index()+1, entry)
	}
}
