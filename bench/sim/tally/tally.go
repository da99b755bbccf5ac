// Package tally counts what happened in a simulated world.
package tally

import (
	"reflect"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Stats count what happened in a run. A run in which little happens shows little.
type Stats struct {
	Entries, Operations, Requests, Repeats                      int
	Granted, Denied, Abandoned, Settled, Renewed                int
	Elections, Installs, Snapshots, Crashes, Restarts           int
	Suspensions, Cuts, Losses, Stalled, Stale, Incidents, Local int
	Waited, Slots, HungUp, Resumed, Signals, Paused             int
	Escrowed, Vacated, Lent, Returned, Paid                     int
	Changes, HandedOver, Wiped, Learners                        int
	Joined, Went, Promised, Shared, Withheld                    int
}

// Add adds what happened in another run.
func (s *Stats) Add(o *Stats) {
	sum := reflect.ValueOf(s).Elem()
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + reflect.ValueOf(o).Elem().Field(i).Int())
	}
}

// See counts what an entry did.
func (s *Stats) See(entry *logv1.Entry, results []*logv1.Result) {
	for i, op := range entry.GetOperations() {
		answer := results[i].GetAcquire()
		if answer.GetGranted() && op.GetAcquire().GetHeld() > 0 {
			s.Waited++
		}
		s.Paid += len(answer.GetPaid())
		s.Returned += len(op.GetReturnEscrow().GetReturns())
		if results[i].GetEscrow().GetOutcome() == logv1.EscrowResult_OUTCOME_GRANTED {
			s.Lent++
		}
		for _, d := range answer.GetDenials() {
			if d.GetReason() == logv1.Reason_REASON_PAUSED || d.GetReason() == logv1.Reason_REASON_BLOCKED {
				s.Paused++
			}
		}
	}
}
