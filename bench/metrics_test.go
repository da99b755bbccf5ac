package bench

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// scrape returns what a node exports.
func scrape(ctx context.Context, t *testing.T, nodes *Nodes) io.Reader {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+nodes.HTTP(0)+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response.Body
}

// TestNoLabelIsAClients sends names that no limit has.
func TestNoLabelIsAClients(t *testing.T) {
	t.Run("G10_no_metric_label_has_a_value_that_a_client_chose", func(t *testing.T) {
		nodes := startCluster(t, nil)
		exactLimit(t, nodes)
		conn, err := Dial(nodes.GRPC(0))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ask := func(limit, class string, attempt uint32) {
			// Refused or denied, each must leave no trace of the name.
			_, _ = quorleasev1.NewAdmissionClient(conn).Acquire(t.Context(), &quorleasev1.AcquireRequest{
				Client: "strange-client", Class: class, Attempt: attempt,
				Charges: []*quorleasev1.Charge{{Limit: limit, Dimension: "requests", Amount: 1}},
			})
		}
		budget(t, nodes)
		ask("strange-limit", "", 0)
		ask("strange-limit", "", 100)
		ask("exact", "strange_class", 0)
		ask("exact", "strange_class", 100)
		body, err := io.ReadAll(scrape(t.Context(), t, nodes))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(body), `reason="attempts"`) {
			t.Error("no decision was counted that the retry budget made")
		}
		for line := range strings.Lines(string(body)) {
			if strings.Contains(line, "strange-") || strings.Contains(line, "strange_") {
				t.Errorf("a label with a client's value: %s", line)
			}
		}
	})
}

// budget applies a retry budget for every client.
func budget(t *testing.T, nodes *Nodes) {
	t.Helper()
	conn, err := Dial(nodes.GRPC(0))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = quorleasev1.NewLimitsClient(conn).Apply(t.Context(), &quorleasev1.LimitsApplyRequest{
		RetryBudgets: []*quorleasev1.RetryBudget{{Name: "default", Client: "*", RetryAfter: durationpb.New(60e9)}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
