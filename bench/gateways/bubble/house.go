package bubble

import (
	"context"
	"testing"

	"github.com/quorlease/quorlease/bench/gateways"
)

// House is where storms are played in a bubble, of which tb is the test: so much of them.
func House(tb testing.TB, seed uint64, part float64) *gateways.House {
	tb.Helper()
	return &gateways.House{
		Pace: 1, Seed: seed, Part: part,
		Open: func(_ context.Context, setting *gateways.Setting) (gateways.Stage, func() error, error) {
			stage, err := New(tb, setting) //nolint:contextcheck // what is started outlives the call
			if err != nil {
				return nil, nil, err
			}
			return stage, stage.Close, nil
		},
	}
}
