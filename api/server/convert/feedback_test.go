package convert_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/fsm/match"
)

// heard is a good answer of a provider with one change.
func heard(change func(*quorleasev1.Feedback)) *quorleasev1.ReportRequest {
	f := &quorleasev1.Feedback{
		Kind: quorleasev1.Feedback_THROTTLED, Limit: "azure", Key: "gpt4", Wait: durationpb.New(22 * time.Second),
		Remaining: map[string]int64{"tokens": 0, "requests": 3}, Reason: "rate_limit_exceeded",
	}
	change(f)
	return &quorleasev1.ReportRequest{Client: "gw", Feedback: []*quorleasev1.Feedback{f}}
}

func TestFeedbackBecomesASignal(t *testing.T) {
	t.Parallel()
	r := heard(func(*quorleasev1.Feedback) {})
	op, err := convert.Report(r, "owner")
	if err != nil || op != nil {
		t.Fatalf("nothing was admitted: got %v, %v", op, err)
	}
	want := &logv1.Signal{
		Limit: "azure", Key: "gpt4", Kind: logv1.Signal_KIND_THROTTLED, Wait: int64(22 * time.Second),
		Observed: []*logv1.Observed{{Dimension: "requests", Remaining: 3}, {Dimension: "tokens"}},
		Reason:   "rate_limit_exceeded",
	}
	got := convert.Signal(r.GetFeedback()[0], match.Target{Limit: "azure", Key: "gpt4"})
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// The kinds of both protocols have the same numbers.
	for kind, name := range quorleasev1.Feedback_Kind_name {
		if inner := logv1.Signal_Kind(kind).String(); inner != "KIND_"+strings.TrimPrefix(name, "KIND_") {
			t.Errorf("%s is %s in the log", name, inner)
		}
	}
}

func TestBadFeedback(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*quorleasev1.Feedback)
		want   string
	}{
		{"kind", func(f *quorleasev1.Feedback) { f.Kind = 0 }, "feedback[0].kind: 0 is none"},
		{"unknown kind", func(f *quorleasev1.Feedback) { f.Kind = 6 }, "feedback[0].kind: 6 is none"},
		{"limit", func(f *quorleasev1.Feedback) { f.Limit = "" }, "feedback[0].limit: missing"},
		{"key", func(f *quorleasev1.Feedback) { f.Key = "a\nb" }, "feedback[0].key: "},
		{"both", func(f *quorleasev1.Feedback) {
			f.Attributes = map[string]string{"deployment": "gpt4"}
		}, "feedback[0].limit: must be absent beside attributes"},
		{"attribute", func(f *quorleasev1.Feedback) {
			f.Limit, f.Key, f.Attributes = "", "", map[string]string{"deployment": ""}
		}, "feedback[0].attributes.deployment: "},
		{"wait", func(f *quorleasev1.Feedback) { f.Wait = durationpb.New(25 * time.Hour) }, "[0].wait: 25h0m0s is out of"},
		{"negative wait", func(f *quorleasev1.Feedback) { f.Wait = durationpb.New(-1) }, "[0].wait: -1ns is out of"},
		{"dimension", func(f *quorleasev1.Feedback) {
			f.Remaining = map[string]int64{"Tokens": 1}
		}, `feedback[0].remaining: "Tokens"`},
		{"remaining", func(f *quorleasev1.Feedback) {
			f.Remaining = map[string]int64{"tokens": -1}
		}, "feedback[0].remaining.tokens: -1 is out of range"},
		{"nothing observed", func(f *quorleasev1.Feedback) {
			f.Kind, f.Remaining = quorleasev1.Feedback_OBSERVED, nil
		}, "feedback[0].remaining: missing"},
		{"reason", func(f *quorleasev1.Feedback) { f.Reason = strings.Repeat("r", 257) }, "feedback[0].reason: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := convert.Report(heard(test.change), "")
			var fields limitsfile.FieldErrors
			if !errors.As(err, &fields) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	many := heard(func(*quorleasev1.Feedback) {})
	many.Feedback = make([]*quorleasev1.Feedback, 65)
	if _, err := convert.Report(many, ""); err == nil || !strings.Contains(err.Error(), "feedback: 65 entries, more") {
		t.Errorf("65: %v", err)
	}
}

func TestControlledIsTheWorstOfThem(t *testing.T) {
	t.Parallel()
	got := convert.Controlled([]*logv1.Controlled{
		{Pace: 900_000, Paused: int64(time.Second)},
		{Gone: true},
		{Pace: 50_000, Paused: int64(22 * time.Second)},
		{Pace: 1_000_000, Blocked: true},
	})
	want := &quorleasev1.Controlled{Paused: durationpb.New(22 * time.Second), Blocked: true, PacePpm: 50_000}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, none := range [][]*logv1.Controlled{nil, {{Gone: true}}} {
		if got := convert.Controlled(none); !got.GetGone() || got.GetPacePpm() != 0 {
			t.Errorf("%v: got %v, want gone", none, got)
		}
	}
}
