package fsm

import (
	"slices"
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Window is the calendar window of a quota.
type Window struct {
	Limit string
	// Calendar must not be changed.
	Calendar *logv1.Calendar
	// Starts and Ends are in Unix nanoseconds, 0 before the first window.
	Starts, Ends int64
}

// WindowsOver are those that have ended at wall, in Unix nanoseconds, and those of
// quotas that have none yet, in the order of the limits' names.
func (m *Machine) WindowsOver(wall int64) []Window {
	var over []Window
	// The order does not matter: they are sorted below.
	for lim := range m.state.AllLimits() {
		if !lim.Live() || lim.Limit.GetKind() != logv1.Kind_KIND_QUOTA {
			continue
		}
		if v := lim.Now(); v.Ends <= wall {
			over = append(over, Window{lim.Name, v.Calendar, v.Starts, v.Ends})
		}
	}
	slices.SortFunc(over, func(a, b Window) int { return strings.Compare(a.Limit, b.Limit) })
	return over
}
