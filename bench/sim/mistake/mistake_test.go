package mistake_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/bench/sim/mistake"
)

// caughtBy is which seed caught a mistake last, where it was not one of the first: the
// search begins there.
var caughtBy = map[string]int{
	"T13": 5, "T14": 1, "T17": 8, "T24": 2, "T25": 4, "T26": 178, "T27": 2, "T28": 2, "T29": 1, "T48": 6, "T49": 20,
	"slots-kept": 2, "slots-twice": 2, "session-lost": 2, "pause-cut": 18,
	"T9": 11, "T10": 13, "T33": 1, "T50": 5, "T50-hold": 41, "T51": 9, "T51-room": 21, "T52": 1,
	"R31-pending": 3, "R31-steady": 7, "R31-healthy": 7, "R33-leader": 3, "R33-again": 3, "R37": 7,
}

// TestTraps: each mistake is caught within 500 seeds, by the rule that it breaks,
// and without one the same binary finds nothing. Those that the simulator does not bring
// about are noticed by tests, which find nothing without one.
func TestTraps(t *testing.T) {
	t.Parallel()
	sources, err := mistake.Write("../../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("simulated", func(t *testing.T) {
		t.Parallel()
		simulated(t, sources)
	})
	for _, in := range mistake.Packages() {
		t.Run(strings.ReplaceAll(in, "/", "-"), func(t *testing.T) {
			t.Parallel()
			checked(t, sources, in)
		})
	}
}

func simulated(t *testing.T, sources *mistake.Sources) {
	t.Helper()
	program, err := sources.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	output, err := mistake.Run(t.Context(), program, "", "-seeds", "4").CombinedOutput()
	if err != nil {
		t.Fatalf("without a mistake: %v\n%s", err, output)
	}
	for _, m := range mistake.Simulated() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			first := caughtBy[m.Name]
			output, err := mistake.Run(t.Context(), program, m.Name, "-first", fmt.Sprint(first),
				"-seeds", fmt.Sprint(500-first), "-tail", "0").CombinedOutput()
			text := string(output)
			switch {
			case err == nil:
				t.Errorf("not caught within 500 seeds:\n%s", text)
			case !slices.ContainsFunc(m.Rules, func(rule string) bool { return strings.Contains(text, " "+rule+": ") }):
				t.Errorf("not caught by any of %v:\n%s", m.Rules, text)
			default:
				t.Log(text)
			}
		})
	}
}

// checked runs tests of one package with each of its mistakes, and once without any.
func checked(t *testing.T, sources *mistake.Sources, in string) {
	t.Helper()
	program, err := sources.BuildTests(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	run := func(seeded, which string) (string, error) {
		command := mistake.Run(t.Context(), program, seeded, "-test.failfast", "-test.run", which)
		command.Dir = filepath.Join("../../..", in)
		output, err := command.CombinedOutput()
		return string(output), err
	}
	var all []string
	for _, m := range mistake.Tested() {
		if m.Package != in {
			continue
		}
		all = append(all, m.Run)
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			if output, err := run(m.Name, m.Run); err == nil || !strings.Contains(output, "--- FAIL") {
				t.Errorf("passes: %v\n%s", err, output)
			}
		})
	}
	if output, err := run("", strings.Join(all, "|")); err != nil {
		t.Errorf("without a mistake: %v\n%s", err, output)
	}
}
