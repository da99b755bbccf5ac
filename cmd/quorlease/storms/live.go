package storms

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/gateways/real"
	"github.com/quorlease/quorlease/bench/storm"
	"github.com/quorlease/quorlease/bench/upstream"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// sayEvery is how often it is said how far a storm in real time has come.
const sayEvery = 15 * time.Second

// defineReal adds the flag for real processes.
func (o *Options) defineReal(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Real, "real", false,
		"play those with whole gateways in real time, with processes on this machine: six minutes")
}

// inReal leaves what is played in real time, and what that is seen beside.
func (o *Options) inReal(played []storm.Scenario, whole []gateways.Storm) ([]storm.Scenario, []gateways.Storm, error) {
	if o.Played {
		return nil, nil, exit.Usagef("--real: --played leaves out everything that it plays")
	}
	var slugs, twins []string
	for _, s := range gateways.All() {
		if _, ok := real.SpeedOf(s); ok {
			slugs = append(slugs, s.Slug)
		}
	}
	whole = slices.DeleteFunc(whole, func(s gateways.Storm) bool { return !slices.Contains(slugs, s.Slug) })
	if len(whole) == 0 {
		return nil, nil, exit.Usagef("--real: --scenario %q is none of %s", o.Scenario, strings.Join(slugs, ", "))
	}
	for _, s := range whole {
		twins = append(twins, s.Twins...)
	}
	return slices.DeleteFunc(played, func(s storm.Scenario) bool { return !slices.Contains(twins, s.Slug) }), whole, nil
}

// live plays storms with real processes, one after the other. Where that fails their logs
// are left, and the error says where.
func (o *Options) live(ctx context.Context, chosen []gateways.Storm) (outcomes []*storm.Outcome, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	for i := range chosen {
		s := &chosen[i]
		speed, _ := real.SpeedOf(*s)
		fmt.Fprintf(o.Progress, "in real time, %d of %d: %s at 1:%d\n", i+1, len(chosen), s.Slug, speed.Pace)
		dir, err := os.MkdirTemp("", "quorlease-real-")
		if err != nil {
			return nil, fmt.Errorf("make a place for processes: %w", err)
		}
		outcome, err := o.watched(ctx, s, real.Config{Binary: program, Dir: dir, Pace: speed.Pace}, speed.Part)
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), err, os.RemoveAll(dir))
		}
		if err != nil {
			return nil, &exit.Error{Code: exit.Failed, Err: fmt.Errorf("%w; the logs are in %s", err, dir)}
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, fmt.Errorf("tidy up: %w", err)
		}
		real.Name(outcome, speed.Pace)
		outcomes = append(outcomes, outcome)
	}
	return outcomes, nil
}

// watched plays one storm, and says meanwhile how far it is.
func (o *Options) watched(ctx context.Context, s *gateways.Storm, c real.Config, part float64) (*storm.Outcome, error) {
	var stage atomic.Pointer[real.Stage]
	house := real.House(c, o.Seed, part, func(opened *real.Stage) {
		fmt.Fprintf(o.Progress, "  the nodes' pages: %s\n", strings.Join(opened.Pages(), " "))
		stage.Store(opened)
	})
	over, end := context.WithCancel(ctx)
	var saying sync.WaitGroup
	saying.Go(func() {
		tick := time.NewTicker(sayEvery)
		defer tick.Stop()
		for {
			select {
			case <-over.Done():
				return
			case <-tick.C:
			}
			if now := stage.Load(); now != nil {
				ledger := now.Provider().Ledger()
				fmt.Fprintf(o.Progress, "  %v: %d calls served, %d refused by the provider\n",
					now.Now().Round(time.Second), ledger.Outcomes[upstream.Served], ledger.Outcomes[upstream.Refused])
			}
		}
	})
	outcome, err := s.Run(ctx, house)
	end()
	saying.Wait()
	return outcome, err
}
