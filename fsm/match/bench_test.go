package match_test

import (
	"fmt"
	"testing"

	"github.com/quorlease/quorlease/fsm/match"
)

// fifty are limits of which three fit.
func fifty(t testing.TB) (*match.Index, *match.Request) {
	t.Helper()
	lines := []string{
		"tenant | tenant=* | tenant | requests input_tokens", "slots | tenant=* | tenant | slots",
	}
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("deployment-%d | deployment=d%d | | requests input_tokens output_tokens", i, i))
	}
	for i := range 8 {
		lines = append(lines, fmt.Sprintf("region-%d | region=r%d-* team=* | team | requests", i, i))
	}
	return index(t, lines...), &match.Request{
		Client:     "gateway-7",
		Attributes: attributes("tenant=a deployment=d17 region=eu-west model=gpt-4o"),
		Amounts:    map[string]int64{"input_tokens": 1200, "output_tokens": 400},
	}
}

// TestMatchingAllocates: the charges, and nothing else.
func TestMatchingAllocates(t *testing.T) {
	x, r := fifty(t)
	got, err := x.Charges(r)
	if err != nil || len(got) != 6 {
		t.Fatalf("%d charges, %v", len(got), err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = x.Charges(r) }); n > 2 {
		t.Errorf("%v allocations, want the list and its charges", n)
	}
}

func BenchmarkCharges(b *testing.B) {
	x, r := fifty(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.Charges(r); err != nil {
			b.Fatal(err)
		}
	}
}
