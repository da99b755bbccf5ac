package refuse

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/client/gateway/provider"
)

var update = flag.Bool("update", false, "write what the refusals are into testdata")

// half draws the middle.
func half(n int64) int64 { return n / 2 }

// sample is a refusal for a reason, with all that it may have.
func sample(reason Reason) Refusal {
	r := Refusal{Reason: reason, Client: "batch-scorer", Wait: 12 * time.Second}
	switch reason {
	case Rate, Quota, Paused, QueueFull, TooLarge:
		r.Scope = "deployment"
		r.Policies = []Policy{
			{
				Limit: "openai-gpt", Dimension: "tokens", Reason: reason.String(), Quota: 400000, Window: time.Minute,
				Left: -20, Known: true, Full: time.Minute,
			},
			{
				Limit: "team", Dimension: "requests", Quota: 1000, Window: time.Minute, Left: 998, Known: true,
				Full: time.Second,
			},
		}
	case Concurrency:
		r.Scope = "team"
		r.Policies = []Policy{{Limit: "crew", Dimension: "slots", Reason: "CONCURRENCY", Quota: 4, Known: true}}
	case RetryBudget, Attempts:
		r.Wait = 0
	case Malformed:
		r.Detail, r.Param = "The field max_tokens is no number.", "max_tokens"
	default:
	}
	return r
}

// page is a reason in each shape, as text.
func page(r Refusal) string {
	var b strings.Builder
	for _, shape := range []struct {
		name string
		to   Asker
	}{
		{"openai", Asker{Body: provider.OpenAIBody, Accept: "application/json", RequestID: "req_7"}},
		{"anthropic", Asker{Body: provider.AnthropicBody, RequestID: "req_7"}},
		{"google", Asker{Body: provider.GoogleBody}},
		{"aws", Asker{Body: provider.AWSBody}},
		{"problem", Asker{}},
	} {
		a := r.HTTP(shape.to, half)
		fmt.Fprintf(&b, "-- %s --\n%d\n", shape.name, a.Status)
		names := make([]string, 0, len(a.Header))
		for name := range a.Header {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(&b, "%s: %s\n", strings.ToLower(name), strings.Join(a.Header[name], ", "))
		}
		fmt.Fprintf(&b, "\n%s", a.Body)
	}
	trailer, err := r.GRPC(half)
	st := status.Convert(err)
	fmt.Fprintf(&b, "-- grpc --\n%s\n%s\n", st.Code(), st.Message())
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.QuotaFailure:
			for _, v := range d.GetViolations() {
				fmt.Fprintf(&b, "QuotaFailure: %s: %s\n", v.GetSubject(), v.GetDescription())
			}
		case *errdetails.RetryInfo:
			fmt.Fprintf(&b, "RetryInfo: %s\n", d.GetRetryDelay().AsDuration())
		case *errdetails.ErrorInfo:
			fmt.Fprintf(&b, "ErrorInfo: %s, %s\n", d.GetReason(), d.GetDomain())
		default:
			fmt.Fprintf(&b, "%T\n", d)
		}
	}
	for name, values := range trailer {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(values, ", "))
	}
	return b.String()
}

// TestEachReasonInEachShape compares with testdata, a file a reason.
func TestEachReasonInEachShape(t *testing.T) {
	t.Parallel()
	for i := range rows {
		reason := Reason(i)
		t.Run(reason.String(), func(t *testing.T) {
			t.Parallel()
			got := page(sample(reason))
			file := filepath.Join("testdata", strings.ToLower(reason.String())+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}
