package storm_test

import (
	"testing"

	"github.com/quorlease/quorlease/bench/storm"
)

// TestStorms: each scenario lands where an independent simulation of it did.
func TestStorms(t *testing.T) {
	for _, s := range storm.All() {
		t.Run(s.Slug, func(t *testing.T) {
			t.Parallel()
			o := s.Run(1)
			for _, f := range o.Figures {
				t.Logf("%-50s %v %s %v", f.Name, f.Value, f.Unit, f.OK)
			}
			for _, f := range o.Missed() {
				t.Errorf("%s is %v%s", f.Name, f.Value, f.Unit)
			}
		})
	}
}
