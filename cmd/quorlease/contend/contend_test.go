package contend

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// complete reads a command line.
func complete(t *testing.T, args ...string) (*Options, error) {
	t.Helper()
	o := &Options{}
	flags := pflag.NewFlagSet("contention", pflag.ContinueOnError)
	o.Define(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o, o.Complete(flags.Changed)
}

// TestBoundsThatNothingMisses: a bound that is no bound is refused, so that no
// script believes that it is kept.
func TestBoundsThatNothingMisses(t *testing.T) {
	for args, want := range map[string]string{
		"--min-grants=NaN":            "--min-grants NaN is not a number of at least 0",
		"--min-ratio=-3":              "--min-ratio -3 is not a number of at least 0",
		"--min-ratio=+Inf":            "--min-ratio +Inf is not a number of at least 0",
		"--max-p99=-5s":               "--max-p99 -5s is negative",
		"--min-ratio=0.1 --no-echo":   "--min-ratio needs the echo",
		"--rate=NaN":                  "--rate NaN is outside",
		"--kill-leader-every=-1s":     "--kill-leader-every -1s is shorter",
		"--stop-node=-1@2s":           "--stop-node -1 is outside",
		"--kill-leader-every=10m":     "none would be killed",
		"--stop-node=2@5s --rounds=2": "with a fault there is one round",
	} {
		if _, err := complete(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
	if _, err := complete(t, "--min-ratio=0.1", "--max-p99=1s", "--kill-leader-every=5s"); err != nil {
		t.Errorf("good flags: %v", err)
	}
}

// TestPageThatCannotBeWritten: that is said before the run, not a minute later.
func TestPageThatCannotBeWritten(t *testing.T) {
	o, err := complete(t, "--html="+filepath.Join(t.TempDir(), "no", "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--html") {
		t.Errorf("got %v", err)
	}
}
