package calendar

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
)

// Every is how often a Keeper looks. A window begins so much late at most, and a
// round trip.
const Every = 250 * time.Millisecond

// Config says what a Keeper works with. The functions are called from its one
// goroutine. All are required but Logger.
type Config struct {
	// Leads says whether this node leads: only the leader keeps the calendar.
	Leads func() bool
	// Clocks are what the voters' clocks show, this node's own included, and how many
	// voters there are.
	Clocks func() (readings []Reading, voters int)
	// View reads this node's replica at once.
	View func(read func(*fsm.Machine))
	// Do proposes an operation and waits.
	Do func(ctx context.Context, op *logv1.Operation) error
	// Skewed hears of a clock that has gone away from the others, once.
	Skewed func(Skew)
	Logger hclog.Logger
}

// Keeper begins windows when it is time. Run is its goroutine.
type Keeper struct {
	config Config
	// away are the nodes whose clocks have been named.
	away map[string]bool
}

// NewKeeper makes a Keeper. Nothing runs yet.
func NewKeeper(config Config) *Keeper {
	if config.Logger == nil {
		config.Logger = hclog.NewNullLogger()
	}
	return &Keeper{config: config, away: map[string]bool{}}
}

// Wall is the cluster's wall clock in Unix nanoseconds as this node can tell, 0 where
// it can't: that moves nothing. It is safe for concurrent use.
func (k *Keeper) Wall() int64 {
	wall, _ := Median(k.config.Clocks())
	return wall
}

// Run looks until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if k.config.Leads() {
				k.look(ctx)
			}
		}
	}
}

// look names clocks that are far off, and begins the windows whose time has come.
func (k *Keeper) look(ctx context.Context) {
	readings, voters := k.config.Clocks()
	wall, ok := Median(readings, voters)
	if !ok {
		return
	}
	for _, skew := range skews(readings, wall, k.away) {
		k.config.Logger.Warn("clock far from the others", "node", skew.Node, "took", skew.By)
		k.config.Skewed(skew)
	}
	var over []fsm.Window
	k.config.View(func(m *fsm.Machine) {
		wall = max(wall, m.Wall())
		over = m.WindowsOver(wall)
	})
	for _, w := range over {
		if err := k.roll(ctx, w, wall); err != nil {
			k.config.Logger.Debug("window not begun", "limit", w.Limit, "err", err)
		}
	}
}

// roll begins the window of now.
func (k *Keeper) roll(ctx context.Context, last fsm.Window, wall int64) error {
	starts, ends, err := Window(last.Calendar, wall)
	if err != nil {
		return err
	}
	return k.config.Do(ctx, &logv1.Operation{Kind: &logv1.Operation_RollWindow{RollWindow: &logv1.RollWindow{
		// Where the zone database has changed the last window may end later than
		// this one begins by it.
		Limit: last.Limit, Starts: max(starts, last.Ends), Ends: ends,
	}}})
}
