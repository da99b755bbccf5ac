package sim_test

import (
	"fmt"
	"testing"

	"github.com/quorlease/quorlease/bench/sim"
)

func TestSeeds(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprintf("seed_%d", seed), func(t *testing.T) {
			o := sim.Run(sim.Options{Seed: seed})
			if o.Broken != nil {
				t.Fatalf("%v", o)
			}
			t.Log(o)
		})
	}
}

func TestTraps(t *testing.T) {
	for _, seeded := range sim.Traps() {
		t.Run(string(seeded.Trap), func(t *testing.T) {
			for seed := range uint64(100) {
				o := sim.Run(sim.Options{Seed: seed, Trap: seeded.Trap})
				if o.Broken != nil {
					t.Log(o)
					return
				}
			}
			t.Error("not caught")
		})
	}
}
