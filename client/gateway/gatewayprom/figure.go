package gatewayprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/client/gateway"
)

// figure is what one name says.
type figure struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	// read returns the same labels in the same order each time.
	read func(*gateway.Stats) []part
}

// part is one series of a figure.
type part struct {
	value  float64
	labels []string
}

// of is a part with one label.
func of(label string, n uint64) part { return part{float64(n), []string{label}} }

// counter is a figure that only grows.
func counter(name, help string, read func(*gateway.Stats) uint64) figure {
	return figure{name, help, prometheus.CounterValue, nil, func(s *gateway.Stats) []part {
		return []part{{value: float64(read(s))}}
	}}
}

// gauge is a figure of now.
func gauge(name, help string, read func(*gateway.Stats) float64) figure {
	return figure{name, help, prometheus.GaugeValue, nil, func(s *gateway.Stats) []part {
		return []part{{value: read(s)}}
	}}
}

// counters are several that only grow, told apart by a label.
func counters(name, help, label string, read func(*gateway.Stats) []part) figure {
	return figure{name, help, prometheus.CounterValue, []string{label}, read}
}

// gauges are several of now.
func gauges(name, help, label string, read func(*gateway.Stats) []part) figure {
	return figure{name, help, prometheus.GaugeValue, []string{label}, read}
}
