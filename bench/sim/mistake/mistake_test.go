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
}

// TestTraps: each mistake is caught within 500 seeds, by the rule that it breaks,
// and without one the same binary finds nothing.
func TestTraps(t *testing.T) {
	t.Parallel()
	program, err := mistake.Build(t.Context(), "../../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	output, err := mistake.Run(t.Context(), program, "", "-seeds", "4").CombinedOutput()
	if err != nil {
		t.Fatalf("without a mistake: %v\n%s", err, output)
	}
	for _, m := range mistake.All() {
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

// TestChecks: the mistakes that the simulator does not bring about are noticed by tests,
// which find nothing without one.
func TestChecks(t *testing.T) {
	t.Parallel()
	programs := map[string]string{}
	for _, m := range mistake.Tested() {
		program := programs[m.Package]
		if program == "" {
			var err error
			if program, err = mistake.BuildTests(t.Context(), "../../..", t.TempDir(), m.Package); err != nil {
				t.Fatal(err)
			}
			programs[m.Package] = program
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			for seeded, want := range map[string]bool{"": true, m.Name: false} {
				command := mistake.Run(t.Context(), program, seeded, "-test.run", m.Run)
				command.Dir = filepath.Join("../../..", m.Package)
				output, err := command.CombinedOutput()
				if passes := err == nil; passes != want || !passes && !strings.Contains(string(output), "--- FAIL") {
					t.Errorf("with mistake %q: passes %t, want %t: %v\n%s", seeded, passes, want, err, output)
				}
			}
		})
	}
}
