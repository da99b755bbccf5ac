package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const benchmarks = `goos: linux
cpu: some
BenchmarkAlone/quorlease            5379259       50.0 ns/op       0 B/op       0 allocs/op
BenchmarkAlone/quorlease-2          2954635       50.5 ns/op       0 B/op       0 allocs/op
BenchmarkAlone/rate                 1785657       100 ns/op       0 B/op       0 allocs/op
BenchmarkTogether/quorlease-2       1785657       80 ns/op       0 B/op       0 allocs/op
BenchmarkTogether/rate-2            5224015       100 ns/op       0 B/op       0 allocs/op
BenchmarkFailOpen                    237440      2154 ns/op     241 B/op       3 allocs/op
PASS
`

func TestPermitFigures(t *testing.T) {
	t.Parallel()
	round := readBenchmarks(benchmarks)
	if want := (measurement{2154, 3}); len(round) != 6 || round["FailOpen"] != want {
		t.Fatalf("%v, want six benchmarks", round)
	}
	slower := readBenchmarks(strings.ReplaceAll(benchmarks, "50.0 ns", "90 ns"))
	figures, err := permitFigures([]measurements{round, slower, round})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	missed := table(figures, &got)
	want := "| figure | Quorlease | beside it | ratio | bound |\n|---|---|---|---|---|\n" +
		"| permit from a held lease (`Limiter.Allow`), one caller | 50 ns (50 to 90) | x/time/rate 100 ns | " +
		"0.5 (0.5 to 0.9) | ≤ 1.2, kept |\n" +
		"| permit from a held lease, on two processors | 80 ns | x/time/rate 100 ns | 0.8 | ≤ 0.6, MISSED |\n" +
		"| allocations of a permit | 0 |  |  | 0, kept |\n" +
		"| decision while nobody answers (`Client.Acquire`) | 2,154 ns |  |  | ≤ 5000 ns, kept |\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	say := "permit from a held lease, on two processors: 80 ns 0.8 is not ≤ 0.6"
	if missed == nil || missed.Error() != say {
		t.Errorf("missed %v, want %s", missed, say)
	}
	if _, err := permitFigures([]measurements{{}}); err == nil {
		t.Error("a round without benchmarks: no error")
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	var out, log bytes.Buffer
	for _, args := range [][]string{nil, {"everything"}, {"bounds", "-rounds", "many"}} {
		if err := run(t.Context(), args, &out, &log); err == nil || out.Len() > 0 {
			t.Errorf("%v: %v, printed %q", args, err, out.String())
		}
	}
}
