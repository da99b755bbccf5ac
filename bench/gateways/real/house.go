package real

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quorlease/quorlease/bench/gateways"
)

const (
	// machineTime is what a machine may add to a wait, in its own time.
	machineTime = 250 * time.Millisecond
	// checkWait is how long nodes may take to agree in the end.
	checkWait = 30 * time.Second
)

// shorter is what a gateway's file does not say of times, as far as it may go as fast as the
// scenario does.
func shorter(file string, pace int) (more string) {
	quick := func(d time.Duration) time.Duration { return max(time.Second, d/time.Duration(pace)) }
	if !strings.Contains(file, "attempts:") {
		more += fmt.Sprintf("attempts: {remembered: %v}\n", quick(2*time.Minute))
	}
	if !strings.Contains(file, "circuit:") {
		more += fmt.Sprintf("circuit: {window: %v, open: %v}\n", quick(10*time.Second), quick(30*time.Second))
	}
	return more
}

// House is where storms are played with real processes: so much of them. Each stage gets
// a folder of its own below c.Dir; opened, which may be nil, is called when it is ready. In
// the end the nodes' states and logs are held to G1, G2 and G9.
func House(c Config, seed uint64, part float64, opened func(*Stage)) *gateways.House {
	if c.Pace == 0 {
		c.Pace = paceMax
	}
	return &gateways.House{
		Pace: c.Pace, Seed: seed, Part: part, Slack: time.Duration(c.Pace) * machineTime,
		Open: func(ctx context.Context, setting *gateways.Setting) (gateways.Stage, func() error, error) {
			own, quick := c, *setting
			quick.File = func(to string) string { return setting.File(to) + shorter(setting.File(to), c.Pace) }
			var err error
			if own.Dir, err = os.MkdirTemp(c.Dir, "stage-"); err != nil {
				return nil, nil, fmt.Errorf("make a folder: %w", err)
			}
			stage, err := Open(ctx, own, quick)
			if err != nil {
				return nil, nil, err
			}
			if opened != nil {
				opened(stage)
			}
			return stage, func() error {
				within, cancel := context.WithTimeout(ctx, checkWait)
				defer cancel()
				return errors.Join(stage.Check(within), stage.Close())
			}, nil
		},
	}
}
