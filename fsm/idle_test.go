package fsm_test

import (
	"fmt"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// TestIdleTenantsGo: tenants that come, do everything that leaves a record, and are
// never heard of again. None of the records outlives its reason, so that the state is
// as large as what is going on, however many have been there before.
func TestIdleTenantsGo(t *testing.T) {
	t.Parallel()
	t.Run("S2-27", func(t *testing.T) {
		t.Parallel()
		const tenants, gap = 200, 100 * time.Millisecond
		d := fsmtest.New(t)
		limit := fsmtest.Keyed("tenant", fsmtest.Dimension(t, "requests", "10/1s", 10))
		limit.MaxKeys = 1000
		gate := fsmtest.Slots("gate", 4)
		d.At(0, fsmtest.Apply(limit, gate), budgets(standardBudget()))
		before := d.Counts()
		largest := fsm.Counts{}
		at := time.Duration(0)
		for round := range 3 {
			for i := range tenants {
				at += gap
				visit(d, at, fmt.Sprintf("tenant-%d-%d", round, i), i)
				n := d.Counts()
				largest.Keys, largest.Leases = max(largest.Keys, n.Keys), max(largest.Leases, n.Leases)
			}
			// Longer than anything of theirs is kept. What one entry ends may leave others
			// to the next.
			at += 50 * time.Hour
			for range 3 {
				at += gap
				d.At(at)
			}
			if n := d.Counts(); n != before {
				t.Fatalf("after round %d: %+v, want %+v as before them", round, n, before)
			}
		}
		if largest.Keys < tenants/2 || largest.Leases < tenants/2 {
			t.Errorf("%+v at most: they left nothing to forget", largest)
		}
	})
}

// visit is a tenant with a lease that nobody settles, a slot of a session, a report of
// its retries, one of what it admitted by itself, and a pause.
func visit(d *fsmtest.Driver, at time.Duration, tenant string, i int) {
	d.T.Helper()
	slot := fsmtest.Track(tenant+" slot", fsmtest.Charge("gate", tenant, "slots", 1))
	slot.GetAcquire().Session, slot.GetAcquire().Connection = fsmtest.LeaseID(tenant), 1
	results := d.At(at,
		fsmtest.Track(tenant, fsmtest.Charge("tenant", tenant, "requests", 5)), slot,
		fsmtest.Report("n1", 1, &logv1.ClientSlice{
			Client: tenant, Slice: int64(at / time.Second), Total: 3, Retries: 2, Throttled: 1,
		}),
		fsmtest.Operation(&logv1.Feedback{Signals: []*logv1.Signal{{
			Limit: "tenant", Key: tenant, Kind: logv1.Signal_KIND_THROTTLED, Wait: int64(time.Minute),
		}}}),
		fsmtest.Admitted(tenant, fsmtest.Count("tenant", tenant, "requests", int64(1+i%20))))
	for _, r := range results {
		if r.GetRefusal() != nil || r.GetAcquire() != nil && !r.GetAcquire().GetGranted() {
			d.T.Fatalf("%s: %v", tenant, r)
		}
	}
}
