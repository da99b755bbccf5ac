package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/cluster/escrow"
)

// holdings show what a node holds in escrow, read when somebody asks.
type holdings struct {
	held, asks *prometheus.Desc
	wallet     *escrow.Wallet
}

// Escrow adds what a wallet holds, by limit, and what became of what it asked for.
func (m *Set) Escrow(wallet *escrow.Wallet) {
	m.collectors = append(m.collectors, &holdings{
		wallet: wallet,
		held: prometheus.NewDesc("quorlease_escrow_tokens",
			"Tokens that this node may grant by itself, over all keys and dimensions of a limit.", []string{"limit"}, nil),
		asks: prometheus.NewDesc("quorlease_escrow_asks_total",
			"What became of what this node asked for.", []string{"outcome"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (h *holdings) Describe(to chan<- *prometheus.Desc) { to <- h.held; to <- h.asks }

// Collect implements prometheus.Collector.
func (h *holdings) Collect(to chan<- prometheus.Metric) {
	held := h.wallet.Held()
	names := slices.Sorted(maps.Keys(held))
	for _, limit := range names[:min(len(names), levelsMax)] {
		to <- prometheus.MustNewConstMetric(h.held, prometheus.GaugeValue, float64(held[limit]), limit)
	}
	o := h.wallet.Outcomes()
	for _, one := range []struct {
		outcome string
		count   uint64
	}{{"granted", o.Granted}, {"contended", o.Contended}, {"none", o.None}, {"lost", o.Lost}} {
		to <- prometheus.MustNewConstMetric(h.asks, prometheus.CounterValue, float64(one.count), one.outcome)
	}
}
