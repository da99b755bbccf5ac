package load

import (
	"time"

	"github.com/quorlease/quorlease/bench/report"
	"github.com/quorlease/quorlease/bench/stat"
)

// percents are the points of a distribution that are shown.
var percents = []float64{0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 100}

// Report is what was measured in length, as it is shown.
func (m *Measured) Report(length time.Duration) report.Side {
	decided := m.Granted + m.Denied
	s := report.Side{
		Granted: m.Granted, Denied: m.Denied, Failed: m.Failed, Local: m.Local, Escrow: m.Escrow,
		Backlog: m.Backlog, Seconds: length.Seconds(),
		DecisionsPerSecond: float64(decided) / length.Seconds(),
		GrantsPerSecond:    float64(m.Granted) / length.Seconds(),
		P50:                ms(m.Latencies.At(50)), P99: ms(m.Latencies.At(99)), P999: ms(m.Latencies.At(99.9)),
		Max: ms(m.Latencies.Max()), Fairness: stat.Jain(m.PerCaller),
	}
	if m.CPU != nil && decided > 0 {
		micros := float64(m.CPU.Microseconds()) / float64(decided)
		s.CPU = &micros
	}
	for _, percent := range percents {
		s.Percentiles = append(s.Percentiles, report.Point{Percent: percent, MS: ms(m.Latencies.At(percent))})
	}
	s.Timeline.SlotMS = ms(SlotLength)
	for i := range m.Slots {
		at := &m.Slots[i]
		s.Timeline.Granted = append(s.Timeline.Granted, at.Granted.Load())
		s.Timeline.Denied = append(s.Timeline.Denied, at.Denied.Load())
		s.Timeline.Failed = append(s.Timeline.Failed, at.Failed.Load())
		s.Timeline.Local = append(s.Timeline.Local, at.Local.Load())
	}
	return s
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
