package tally

import (
	"fmt"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
)

// Check says whether a count can be kept. The error is a *check.FieldError.
func Check(s *logv1.ClientSlice) error {
	if err := check.Text("client", s.GetClient(), 1, check.MaxText); err != nil {
		return err
	}
	if s.GetTotal() < 0 || s.GetTotal() > MaxCount || s.GetRetries() < 0 || s.GetRetries() > s.GetTotal() {
		return &check.FieldError{Field: "total", Problem: fmt.Sprintf(
			"%d with %d retries: must be from 0 to %d, and the retries among them",
			s.GetTotal(), s.GetRetries(), MaxCount)}
	}
	for _, one := range []struct {
		field string
		count int64
	}{
		{"throttled", s.GetThrottled()}, {"denied", s.GetDenied()}, {"early", s.GetEarly()}, {"errors", s.GetErrors()},
	} {
		if one.count < 0 || one.count > MaxCount {
			return &check.FieldError{Field: one.field, Problem: fmt.Sprintf(
				"%d: must be from 0 to %d", one.count, MaxCount)}
		}
	}
	return check.Text("error", s.GetError(), 0, MaxFault)
}
