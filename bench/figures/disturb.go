package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/quorlease/quorlease/bench/disturb"
)

// disturbed kills, stops and cuts off nodes under an open loop. The rounds are kills.
func disturbed(ctx context.Context, p place, o options, out io.Writer) error {
	c := disturb.Default()
	c.Binary, c.Dir, c.Seed, c.Progress = p.binary, p.dir, o.seed, p.log
	if o.rounds > 0 {
		c.Kills = c.KillEvery * time.Duration(o.rounds)
	}
	if o.verbose {
		c.Log = p.log
	}
	result, err := disturb.Run(ctx, c)
	if err != nil {
		return err
	}
	if err := result.Text(out); err != nil {
		return err
	}
	var missed []error
	for _, line := range result.Missed() {
		missed = append(missed, errors.New(line))
	}
	return errors.Join(missed...)
}
