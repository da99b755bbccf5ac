package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

func newWouldRefuse() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quorlease_retry_budget_would_refuse_total",
		Help: "Acquires that a retry budget in mode shadow or warn would have refused.",
	}, []string{"retry_budget", "mode", "reason"})
}

// WouldRefuse counts an acquire that its retry budget would have refused if it
// were enforced.
func (m *Set) WouldRefuse(budget *logv1.RetryBudget, reason logv1.Reason) {
	mode := strings.ToLower(strings.TrimPrefix(budget.GetMode().String(), "MODE_"))
	m.wouldRefuse.WithLabelValues(budget.GetName(), mode, reasonLabels[reason]).Inc()
}
