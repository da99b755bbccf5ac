package scaling

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/bench/scale"
)

// complete reads a command line.
func complete(t *testing.T, args ...string) (*Options, error) {
	t.Helper()
	o := &Options{}
	flags := pflag.NewFlagSet("scale", pflag.ContinueOnError)
	o.Define(flags)
	o.Timeout = scale.Default().Timeout
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o, o.Complete(flags.Changed)
}

func TestFlags(t *testing.T) {
	t.Parallel()
	o, err := complete(t, "--parts=nodes,keys", "--nodes=1,3,5", "--keys", "10", "--share", "12.5%", "--rounds=5")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.Parts, []scale.Part{scale.Nodes, scale.Keys}) || !slices.Equal(o.Nodes, []int{1, 3, 5}) ||
		!slices.Equal(o.Keys, []int{10}) || o.Share != 1250 || o.Rounds != 5 || o.Hasty {
		t.Errorf("%+v", o.Config)
	}
	// What is quick can be told what to do, and else does little.
	o, err = complete(t, "--quick", "--nodes=1,4")
	if err != nil {
		t.Fatal(err)
	}
	if !o.Hasty || o.Rounds != 1 || !slices.Equal(o.Nodes, []int{1, 4}) || len(o.Keys) != 2 ||
		slices.Contains(o.Parts, scale.Snapshots) {
		t.Errorf("%+v", o.Config)
	}
	o, err = complete(t, "--quick", "--parts=snapshots")
	if err != nil || !slices.Equal(o.Parts, []scale.Part{scale.Snapshots}) {
		t.Errorf("%+v, %v", o.Config, err)
	}
}

func TestFlagsThatAreWrong(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--quick --rounds=3": "--rounds does not go with --quick, which sets it",
		"--nodes=3,3":        "--nodes has a number twice",
		"--parts=disks":      `--parts "disks" is none of nodes, keys, callers, entries, snapshots`,
		"--share=0%":         "--share 0% is outside 1% to 100%",
		"--buckets=10":       "--buckets 10 is outside 1000 to 1000000",
	} {
		if _, err := complete(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}

// TestPageThatCannotBeWritten: that is said before the run, not minutes later.
func TestPageThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	o, err := complete(t, "--html="+filepath.Join(t.TempDir(), "no", "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.Answer(t.Context(), false); err == nil || !strings.Contains(err.Error(), "--html") {
		t.Errorf("got %v", err)
	}
}
