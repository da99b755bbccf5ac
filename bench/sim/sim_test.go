package sim_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/bench/sim"
	"github.com/quorlease/quorlease/bench/sim/tally"
	"github.com/quorlease/quorlease/bench/sim/trap"
)

// seedsMost is within how many seeds a trap has to be caught, and how many hold
// without one. This package starts no goroutine, in its files or its tests: under the
// race detector the seeds would take minutes.
const seedsMost = 500

func TestMain(m *testing.M) {
	debug.SetGCPercent(sim.GCPercent)
	os.Exit(m.Run())
}

// commit is what the printed seeds belong to.
func commit(t *testing.T) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(output))
}

// TestSeeds: on clean code nothing that is promised breaks, whatever goes wrong
// around it.
func TestSeeds(t *testing.T) {
	t.Parallel()
	seeds := uint64(seedsMost)
	if testing.Short() {
		seeds = 8
	}
	revision := commit(t)
	t.Logf("seeds=0..%d commit=%s", seeds-1, revision)
	outcomes := make([]*sim.Outcome, seeds)
	t.Run("G1_G2_G3_G4_G5_G6_G7_G9_G12_A20", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprintf("seed_%d", seed), func(t *testing.T) {
				t.Parallel()
				o := sim.Run(sim.Options{Seed: seed})
				outcomes[seed] = &sim.Outcome{Stats: o.Stats}
				if o.Broken != nil {
					t.Fatalf("%s\n%v\nagain: make sim SEED=%d (commit %s)", o.Tail(60), o, seed, revision)
				}
			})
		}
	})
	checkBusy(t, outcomes)
}

// checkBusy: a run in which little happens shows little, and runs without faults
// show less.
func checkBusy(t *testing.T, outcomes []*sim.Outcome) {
	t.Helper()
	var all tally.Stats
	for seed, o := range outcomes {
		if o.Stats.Operations < 500 {
			t.Errorf("seed %d: %d operations, want at least 500", seed, o.Stats.Operations)
		}
		all.Add(&o.Stats)
	}
	for what, count := range map[string]int{
		"grants": all.Granted, "denials": all.Denied, "settles": all.Settled, "renewals": all.Renewed,
		"repeats": all.Repeats, "requests given up": all.Abandoned, "leaders beyond the first": all.Elections - len(outcomes),
		"installed snapshots": all.Installs, "restarts": all.Restarts, "suspensions": all.Suspensions, "cuts": all.Cuts,
		"stalled batches": all.Stalled, "incidents": all.Incidents, "tokens admitted locally": all.Local,
		"grants after a wait": all.Waited, "grants of slots": all.Slots, "connections that broke": all.HungUp,
		"sessions that came back": all.Resumed, "signals of providers": all.Signals, "denials by a pause": all.Paused,
		"grants from escrow": all.Escrowed, "escrow given": all.Lent, "escrow given back": all.Returned,
		"leases paid with escrow": all.Paid, "acquires behind a return": all.Vacated,
		"changes of members": all.Changes, "leaderships handed over": all.HandedOver,
		"grants from escrow by learners": all.Learners, "clients that came to share": all.Joined,
		"clients that went": all.Went, "promises of shares": all.Promised, "tokens of shares": all.Shared,
	} {
		if count < len(outcomes)/4 {
			t.Errorf("%d %s in %d runs", count, what, len(outcomes))
		}
	}
	// Members come and go in every fourth run, and a disk is lost in most of those.
	if all.Wiped < len(outcomes)/8 {
		t.Errorf("%d disks lost in %d runs", all.Wiped, len(outcomes))
	}
	t.Logf("%+v", all)
}

// TestRepeats: a seed is one run, to the last bit.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("G9_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			first, second := sim.Run(sim.Options{Seed: seed}), sim.Run(sim.Options{Seed: seed})
			if first.Print != second.Print || first.Stats != second.Stats || first.Tail(400) != second.Tail(400) {
				t.Errorf("seed %d is two runs:\n%v\n%v", seed, first, second)
			}
		})
	}
}

// TestTraps: a harness that has never caught a known mistake proves nothing.
func TestTraps(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]trap.Kind{
		"T1_wall_clocks": trap.WallClock,
		"T2_a_leader_goes_on_from_the_last_stamp": trap.AppliedStamp,
		"T2_no_ticks":                             trap.NoTicks,
		"T3_stamps_before_the_barrier":            trap.BeforeBarrier,
		"T4_an_old_stamp_counts":                  trap.OldStamp,
		"T5_a_node's_clock_sleeps":                trap.NodeSleeps,
		"T5_a_holder's_clock_sleeps":              trap.HolderSleeps,
		"T6_one_clock_is_a_year_ahead":            trap.OwnWall,
		"T12_a_renewed_lease_is_spent_for_longer": trap.Prolonged,
		"T22_leases_in_the_leader's_memory":       trap.LeaseInMemory,
		"T23_no_tombstone":                        trap.NoTombstone,
		"T28_answered_by_one_node's_view":         trap.OwnView,
		"T30_each_node_admits_all":                trap.WholeHeadroom,
		"T31_a_count_is_forgotten_when_sent":      trap.ForgottenWhenSent,
		"T32_a_window_that_stands_still":          trap.FrozenWindow,
		"T34_a_share_starts_full":                 trap.FullShare,
		"T35_a_report_without_an_id":              trap.NoReportID,
		"T37_the_larger_estimate_after_a_restart": trap.LargerEstimate,
		"T38_the_larger_estimate_with_drift":      trap.LargerEstimateDrift,
		"T39_a_leader_is_pulled_back":             trap.PulledBack,
		"T39_a_snapshot_without_the_time":         trap.SnapshotWithoutTime,
		"T40_nothing_bounds_what_comes_back":      trap.Laundering,
		"G1_what_comes_back_comes_back_twice":     trap.DoubleRefund,
		"G2_a_holder_spends_twice":                trap.DoubleSpend,
		"G3_only_the_first_charge_is_debited":     trap.HalfGrant,
		"G7_a_denial_costs_a_token":               trap.CostlyDenial,
		"G7_a_denial_asks_for_too_little":         trap.EarlyHint,
		"G9_one_node_differs":                     trap.Diverging,
		"A13_a_holder_goes_on_without_a_session":  trap.HeldTooLong,
		"A13_a_session_is_ended_by_its_id":        trap.EndedByID,
		"A20_a_report_is_forgotten":               trap.LostReport,
		"R37_a_lost_disk_under_the_same_id":       trap.SameAgain,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catch(t, kind)
		})
	}
}

// caughtBy is which seed caught a trap last, where it was not one of the first: the
// search through the seeds begins there.
var caughtBy = map[trap.Kind]uint64{
	trap.ForgottenWhenSent: 138, trap.Laundering: 19, trap.LostReport: 18, trap.HeldTooLong: 10, trap.HolderSleeps: 7,
	trap.BeforeBarrier: 4, trap.SameAgain: 9,
}

// catch runs seeds until one catches the trap, by the rule that it breaks.
func catch(t *testing.T, kind trap.Kind) {
	t.Helper()
	rule := ""
	for _, s := range trap.All() {
		if s.Trap == kind {
			rule = s.Rule
		}
	}
	for i := range uint64(seedsMost) {
		seed := (caughtBy[kind] + i) % seedsMost
		o := sim.Run(sim.Options{Seed: seed, Trap: kind})
		if o.Broken == nil {
			continue
		}
		if o.Broken.Rule != rule {
			t.Errorf("%v, want it caught by %s", o, rule)
		}
		t.Logf("caught: %v", o)
		return
	}
	t.Errorf("%s was not caught within %d seeds", kind, seedsMost)
}
