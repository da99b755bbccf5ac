package bubble

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/quorlease/quorlease/bench/gateways"
)

// House is where storms are played in a bubble, of which tb is the test: so much of them.
func House(tb testing.TB, seed uint64, part float64) *gateways.House {
	tb.Helper()
	return house(tb, "", seed, part)
}

func house(tb testing.TB, dir string, seed uint64, part float64) *gateways.House {
	tb.Helper()
	stages := 0
	return &gateways.House{
		Pace: 1, Seed: seed, Part: part,
		Open: func(_ context.Context, setting *gateways.Setting) (gateways.Stage, func() error, error) {
			place := dir
			if dir != "" {
				stages++
				place = filepath.Join(dir, strconv.Itoa(stages))
			}
			stage, err := New(tb, place, setting) //nolint:contextcheck // what is started outlives the call
			if err != nil {
				return nil, nil, err
			}
			return stage, stage.Close, nil
		},
	}
}

// OutcomeFile is where Main leaves what a storm came to, as JSON.
const OutcomeFile = "outcome.json"

// Main makes this process a test that plays one storm, writes what it came to into dir, and
// exits: with 1 and the reason on standard error where it could not be played. Nodes have
// their files in dir, too.
//
// A bubble is to be had of package testing only, and that ends its process: so it is one of
// its own.
func Main(dir string, s gateways.Storm, seed uint64) {
	// The flags of this process are none of a test's.
	os.Args = os.Args[:1]
	play := func(t *testing.T) {
		var outcome []byte
		synctest.Test(t, func(t *testing.T) {
			o, err := s.Run(t.Context(), house(t, dir, seed, s.Part))
			if err != nil {
				t.Fatal(err)
			}
			if outcome, err = json.Marshal(o); err != nil {
				t.Fatal(fmt.Errorf("write the outcome: %w", err))
			}
		})
		if err := os.WriteFile(filepath.Join(dir, OutcomeFile), outcome, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testing.Main(func(_, _ string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: s.Slug, F: play}}, nil, nil)
}
