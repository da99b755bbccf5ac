package middle

import (
	"testing"

	"github.com/quorlease/quorlease/bench"
)

// TestALeaderDiesInTheMiddleOfEverything is three kills of what `make middle` does
// fifty times.
func TestALeaderDiesInTheMiddleOfEverything(t *testing.T) {
	t.Parallel()
	binary, err := bench.BuildBinary(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := bench.StartNodes(bench.NodesConfig{Binary: binary, Dir: t.TempDir(), Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	result, err := Run(t.Context(), Config{Nodes: nodes, Rounds: 3, Seed: 1, Out: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *result)
	if result.Kills != 3 || result.Leases == 0 || result.Slots == 0 || result.Waits == 0 || result.Pauses == 0 ||
		result.Debits == 0 {
		t.Errorf("%+v: something was not looked at", *result)
	}
}
