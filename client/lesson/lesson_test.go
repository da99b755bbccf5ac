package lesson

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/failopen"
	"github.com/quorlease/quorlease/fsm/retry"
)

func TestOf(t *testing.T) {
	none := int64(0)
	news := &quorleasev1.Fallbacks{
		Revision: 7,
		Limits: []*quorleasev1.Fallback{
			{Limit: "a", Mode: quorleasev1.FallbackMode_OPEN_ON_LOSS, Unlimited: true},
			{
				Limit: "b", Mode: quorleasev1.FallbackMode_SHARE_ON_LOSS, SharePpm: &none,
				Dimensions: []*quorleasev1.FallbackDimension{
					{Name: "requests", Amount: 5, Interval: durationpb.New(time.Second), Burst: 9},
				},
			},
			{Limit: "c", Mode: quorleasev1.FallbackMode_CLOSED_ON_LOSS},
		},
		Retries: &quorleasev1.RetryRule{
			MaxRetries: 2, MaxFractionBp: 1000, MinRequests: 10, MinRetries: 7, MinRetriesInterval: durationpb.New(time.Second),
			Window: durationpb.New(time.Minute), RetryAfter: durationpb.New(time.Second),
		},
	}
	want := failopen.Lesson{
		Client: "billing", Revision: 7,
		Limits: []failopen.Fallback{
			{Limit: "a", Mode: failopen.Open, Unlimited: true},
			{
				Limit: "b", Mode: failopen.Share, SharePPM: &none,
				Dimensions: []failopen.Dimension{{Name: "requests", Amount: 5, Interval: time.Second, Burst: 9}},
			},
			{Limit: "c", Mode: failopen.Closed},
		},
		Retries: &retry.Rule{
			MaxRetries: 2, MaxFraction: 1000, MinRequests: 10, Window: time.Minute, RetryAfter: time.Second,
			MinRetries: 7, MinInterval: time.Second,
		},
	}
	if diff := cmp.Diff(want, Of("billing", news)); diff != "" {
		t.Errorf("T52: an absent share is not 0 (-want +got):\n%s", diff)
	}
	if l := Of("billing", &quorleasev1.Fallbacks{}); l.Retries != nil || l.Limits != nil {
		t.Errorf("nothing: %+v", l)
	}
}
