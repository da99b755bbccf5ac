package metrics

import "github.com/prometheus/client_golang/prometheus"

func newWarnings() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quorlease_limit_would_refuse_total",
		Help: "Charges of acquires decided that a limit in mode shadow or warn would have refused.",
	}, []string{"limit", "reason"})
}
