package main

import (
	"bytes"
	"testing"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	var out, log bytes.Buffer
	for _, args := range [][]string{nil, {"everything"}, {"failover", "-rounds", "many"}} {
		if err := run(t.Context(), args, &out, &log); err == nil || out.Len() > 0 {
			t.Errorf("%v: %v, printed %q", args, err, out.String())
		}
	}
}
