package fsm_test

import (
	"flag"
	"testing"

	"github.com/quorlease/quorlease/fsm/fsmtest"
)

var rewrite = flag.Bool("rewrite", false, "write what comes out into the scripts")

// TestScripts runs the scripts of testdata, one behaviour each.
func TestScripts(t *testing.T) {
	fsmtest.RunScripts(t, "testdata", *rewrite)
}
