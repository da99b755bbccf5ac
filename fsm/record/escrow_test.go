package record_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/record"
)

func anEscrow() record.Escrow {
	return record.Escrow{
		ID: record.EscrowID{Node: "n1", Boot: 7, Sequence: 3}, LimitID: 1, DimensionID: 2, KeyName: "k", Class: "live",
		Amount: 10, Paid: 4, Took: 5, TookUnit: 2, Version: 3, Until: 61 * second, Void: true,
	}
}

// TestG9EveryFieldOfEscrowCounts changes every field: it comes back, and the state hash
// sees it.
func TestG9EveryFieldOfEscrowCounts(t *testing.T) {
	t.Parallel()
	t.Run("G9", func(t *testing.T) {
		t.Parallel()
		seen := make(map[uint64]int)
		for i, change := range []func(*record.Escrow){
			func(*record.Escrow) {},
			func(e *record.Escrow) { e.ID.Node = "n2" },
			func(e *record.Escrow) { e.ID.Boot++ },
			func(e *record.Escrow) { e.ID.Sequence++ },
			func(e *record.Escrow) { e.LimitID++ },
			func(e *record.Escrow) { e.DimensionID++ },
			func(e *record.Escrow) { e.KeyName = "" },
			func(e *record.Escrow) { e.Class = "" },
			func(e *record.Escrow) { e.Amount++ },
			func(e *record.Escrow) { e.Paid++ },
			func(e *record.Escrow) { e.Took++ },
			func(e *record.Escrow) { e.TookUnit++ },
			func(e *record.Escrow) { e.Version++ },
			func(e *record.Escrow) { e.Until++ },
			func(e *record.Escrow) { e.Void = false },
		} {
			e := anEscrow()
			change(&e)
			if other, there := seen[e.Sum()]; there {
				t.Errorf("changes %d and %d have the same digest", other, i)
			}
			seen[e.Sum()] = i
			back, err := record.LoadEscrow(e.Save(), 60*second)
			if err != nil || back != e {
				t.Errorf("change %d: %+v came back as %+v, %v", i, e, back, err)
			}
		}
		for i, a := range []record.Asker{
			{Node: "n", Boot: 1, Highest: 1},
			{Node: "m", Boot: 1, Highest: 1},
			{Node: "n", Highest: 1},
			{Node: "n", Boot: 1, Highest: 2},
			{Node: "n", Boot: 1, Highest: 1, At: 1},
		} {
			if other, there := seen[a.Sum()]; there {
				t.Errorf("askers %d and %d have the same digest", other, i)
			}
			seen[a.Sum()] = i
			if back, err := record.LoadAsker(a.Save(), 60*second); err != nil || back != a {
				t.Errorf("%+v came back as %+v, %v", a, back, err)
			}
		}
	})
}

func TestLoadEscrowBelievesNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*logv1.SnapshotEscrow){
		"no node":           func(e *logv1.SnapshotEscrow) { e.Id.Node = "" },
		"a node of lines":   func(e *logv1.SnapshotEscrow) { e.Id.Node = "a\nb" },
		"no id":             func(e *logv1.SnapshotEscrow) { e.Id = nil },
		"sequence 0":        func(e *logv1.SnapshotEscrow) { e.Id.Sequence = 0 },
		"nothing given":     func(e *logv1.SnapshotEscrow) { e.Amount, e.Paid = 0, 0 },
		"too much":          func(e *logv1.SnapshotEscrow) { e.Amount = 1<<53 + 1 },
		"more paid":         func(e *logv1.SnapshotEscrow) { e.Paid = 11 },
		"less than nothing": func(e *logv1.SnapshotEscrow) { e.Paid = -1 },
		"took less":         func(e *logv1.SnapshotEscrow) { e.Took = -1 },
		"no unit":           func(e *logv1.SnapshotEscrow) { e.TookUnit = 0 },
		"no class":          func(e *logv1.SnapshotEscrow) { e.Class = "X" },
		"ended before time": func(e *logv1.SnapshotEscrow) { e.Until = -1 },
		"never ends":        func(e *logv1.SnapshotEscrow) { e.Until = int64(60*second) + int64(24*time.Hour) + 1 },
	} {
		e := anEscrow()
		bad := proto.CloneOf(e.Save())
		spoil(bad)
		if _, err := record.LoadEscrow(bad, 60*second); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	for name, a := range map[string]record.Asker{
		"no node": {Boot: 1, Highest: 1}, "no sequence": {Node: "n"},
		"from the future":  {Node: "n", Highest: 1, At: 61 * second},
		"from before time": {Node: "n", Highest: 1, At: -1},
	} {
		if _, err := record.LoadAsker(a.Save(), 60*second); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
