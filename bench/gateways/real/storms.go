package real

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/storm"
)

// Speed is how a storm is played so that a machine with two processors keeps up.
type Speed struct {
	// Pace is how many times as fast as it happened: it divides 60.
	Pace int
	// Part is how much of it is played.
	Part float64
}

// speeds are those of the storms that can be played in real time: some hundred requests a
// second, and a thousand and a half of the job that sends without any delay.
var speeds = map[string]Speed{
	"s3-after-gateway":  {60, 1},
	"s1-budget-gateway": {5, 0.25},
	"s1-fair-gateway":   {20, 0.5},
	"s2-ours-gateway":   {5, 1},
}

// SpeedOf is how a storm is played in real time, if it can be.
func SpeedOf(s gateways.Storm) (Speed, bool) {
	speed, ok := speeds[s.Slug]
	return speed, ok
}

// slack are the figures whose bounds have what a machine adds.
var slack = []storm.Measure{
	storm.LiveP99, storm.Drained, storm.OthersP95, storm.OthersP99, storm.LegitP99,
}

// Name has an outcome say that it is of real processes, and which bounds have what a machine
// may add to a wait.
func Name(o *storm.Outcome, pace int) {
	o.Slug = strings.TrimSuffix(o.Slug, "-gateway") + "-real"
	o.Title += fmt.Sprintf(", real processes at 1:%d", pace)
	for i := range o.Figures {
		if f := &o.Figures[i]; slices.Contains(slack, f.Measure) {
			f.Name += fmt.Sprintf(", %v for the machine's %v", time.Duration(pace)*machineTime, machineTime)
		}
	}
}
