package real_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/gateways"
	"github.com/quorlease/quorlease/bench/gateways/real"
	"github.com/quorlease/quorlease/bench/provider"
	"github.com/quorlease/quorlease/bench/upstream"
)

// plenty is a place where nobody waits for a limit.
func plenty() gateways.Setting {
	return gateways.Setting{
		Gateways: 2, Nodes: 3,
		Limits: `
limits:
- {name: main, match: {deployment: main}, rate: {requests: 1000/s}, burst: {requests: 1000}}
`,
		File: func(to string) string {
			return fmt.Sprintf("deployments: [{name: main, provider: openai, upstream: %q}]\ntries: 1\n", to)
		},
		Provider: upstream.Config{API: upstream.OpenAI},
	}
}

// ask sends one request.
func ask(ctx context.Context, s *real.Stage, gateway int, about string) (gateways.Answer, error) {
	return s.Send(ctx, gateway, gateways.Request{
		Path: "/v1/chat/completions", Header: http.Header{"X-Client-Id": {"program"}, "Authorization": {"Bearer none"}},
		Body: fmt.Appendf(nil, `{"model":"m","max_tokens":16,"messages":[{"role":"user","content":%q}]}`, about),
	})
}

// eventually waits for a condition for up to 30 s.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not after 30 s", what)
		}
	}
}

// TestStage is everything that can be done on one.
func TestStage(t *testing.T) {
	s := open(t, 60, plenty())
	for i := range 2 {
		if got, err := ask(t.Context(), s, i, "hello"); err != nil || got.Status != http.StatusOK || got.Took <= 0 {
			t.Fatalf("gateway %d: %v, %d %s after %v", i, err, got.Status, got.Body, got.Took)
		}
	}
	if err := s.KillGateway(0); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(t.Context(), s, 0, "hello"); err == nil {
		t.Errorf("a gateway that is dead answers %d", got.Status)
	}
	leader, err := s.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.KillNode(leader); err != nil {
		t.Fatal(err)
	}
	next, err := s.Leader(t.Context())
	if err != nil || next == leader {
		t.Errorf("node %d leads after node %d was killed, %v", next, leader, err)
	}
	if err := s.KillNode(next); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an alert", func() bool { n, _ := s.Alerts(); return n == 1 })
	eventually(t, "an answer without a node", func() bool {
		got, err := ask(t.Context(), s, 1, "alone")
		return err == nil && got.Status == http.StatusOK
	})
	for _, node := range []int{leader, next} {
		if err := s.StartNode(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the end of the alert", func() bool { n, _ := s.Cleared(); return n == 1 })
	if err := s.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if served := s.Provider().Ledger().Outcomes[upstream.Served]; served < 3 {
		t.Errorf("the provider has served %d calls", served)
	}
}

// TestHints: a gateway hears in its own time how long to wait.
func TestHints(t *testing.T) {
	const wait = 30 * time.Second
	for api, path := range map[upstream.API]string{
		upstream.OpenAI: "/v1/chat/completions", upstream.Anthropic: "/v1/messages",
	} {
		t.Run(string(api), func(t *testing.T) {
			setting := plenty()
			setting.Nodes, setting.Gateways = 1, 1
			setting.File = func(to string) string {
				return fmt.Sprintf("deployments: [{name: main, provider: %s, upstream: %q}]\ntries: 2\n", api, to)
			}
			setting.Provider = upstream.Config{
				API: api, Rules: upstream.Usual(api, provider.Limits{Requests: 1000, Input: 100_000, Output: 100_000}),
			}
			setting.Faults = []upstream.Fault{{Kind: upstream.Refuse, Cause: upstream.InputTokens, Wait: wait, Calls: 1}}
			s := open(t, 60, setting)
			who := http.Header{"X-Client-Id": {"program"}, "X-Api-Key": {"none"}, "Authorization": {"Bearer none"}}
			got, err := s.Send(t.Context(), 0, gateways.Request{
				Path: path, Header: who,
				Body: []byte(`{"model":"m","max_tokens":16,"messages":[{"role":"user","content":"hello"}]}`),
			})
			calls := s.Provider().Ledger().Calls
			if err != nil || got.Status != http.StatusOK || len(calls) != 2 {
				t.Fatalf("%v, %d %s, %d calls", err, got.Status, got.Body, len(calls))
			}
			// The gateway waits for up to two seconds of its own more.
			if gap := calls[1].Arrived - calls[0].Ended; gap < wait || gap > 20*wait {
				t.Errorf("it came back after %v of the scenario, want %v at least", gap, wait)
			}
		})
	}
}
