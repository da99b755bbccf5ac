// Package lesson reads from an answer what to do when nobody answers.
package lesson

import (
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/fsm/retry"
)

// Of is what an answer to a client says. An absent share stays absent, which is
// not 0 (T52).
func Of(client string, news *quorleasev1.Fallbacks) failopen.Lesson {
	lesson := failopen.Lesson{Client: client, Revision: news.GetRevision()}
	for _, f := range news.GetLimits() {
		lesson.Limits = append(lesson.Limits, fallbackOf(f))
	}
	if rule := news.GetRetries(); rule != nil {
		lesson.Retries = &retry.Rule{
			MaxRetries: rule.GetMaxRetries(), MaxFraction: rule.GetMaxFractionBp(), MinRequests: rule.GetMinRequests(),
			Window: rule.GetWindow().AsDuration(), RetryAfter: rule.GetRetryAfter().AsDuration(),
			MinRetries: rule.GetMinRetries(), MinInterval: rule.GetMinRetriesInterval().AsDuration(),
		}
	}
	return lesson
}

func fallbackOf(f *quorleasev1.Fallback) failopen.Fallback {
	out := failopen.Fallback{Limit: f.GetLimit(), SharePPM: f.SharePpm, Unlimited: f.GetUnlimited()}
	switch f.GetMode() {
	case quorleasev1.FallbackMode_SHARE_ON_LOSS:
		out.Mode = failopen.Share
	case quorleasev1.FallbackMode_CLOSED_ON_LOSS:
		out.Mode = failopen.Closed
	case quorleasev1.FallbackMode_OPEN_ON_LOSS, quorleasev1.FallbackMode_FALLBACK_MODE_UNSPECIFIED:
		out.Mode = failopen.Open
	}
	for _, d := range f.GetDimensions() {
		out.Dimensions = append(out.Dimensions, failopen.Dimension{
			Name: d.GetName(), Amount: d.GetAmount(), Interval: d.GetInterval().AsDuration(), Burst: d.GetBurst(),
		})
	}
	return out
}
