package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/api/server"
	"github.com/quorlease/quorlease/cluster/events"
)

// volatile are the parts of a picture that no two runs have in common: when it was
// taken, how long answers took, and into which ten seconds they fell.
var volatile = regexp.MustCompile(`("(?:time|never_limited_p95|over_for)": )"[^"]*"|("history": )\[[^\]]*\]`)

// TestOverviewIsAsReviewed: the shape of a picture in which there is something of
// everything.
func TestOverviewIsAsReviewed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	code, _, body := s.do(request{
		method: "POST", path: "/v1/limits:apply", kind: "application/yaml", body: yamlLimits,
	})
	if code != http.StatusOK {
		t.Fatal(body)
	}
	for range 2 {
		s.do(request{
			method: "POST", path: "/v1/admission:acquire", kind: "application/json",
			body: `{"client":"batch","charges":[{"limit":"tenant","key":"red","dimension":"requests","amount":"6"}]}`,
		})
	}
	s.node.Apply(&logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: &logv1.ReportRetries{
		Node: "n1", Slices: []*logv1.ClientSlice{{
			Client: "batch", Total: 100, Retries: 46, Throttled: 40, Denied: 40, Early: 38, Error: "429", Errors: 40,
		}},
	}}})
	s.node.Ring.Publish(events.Event{
		Kind: events.ClientOverBudget, Severity: events.Warning, Client: "batch", Value: "46%",
		Text: "batch retry fraction 46%, its retry budget is spent and refuses it",
	})
	text := s.transcript(request{method: "GET", path: "/v1/overview?top=5"})
	golden(t, "overview", volatile.ReplaceAllString(text, `$1$2"…"`))
	for _, word := range []string{`"granted": "1"`, `"denied": "1"`, `"ok": "60"`, `"start_unix_ms": "`} {
		if !strings.Contains(text, word) {
			t.Errorf("no %s in the hour of %s", word, text)
		}
	}
	code, _, body = s.do(request{method: "GET", path: "/v1/overview?top=101"})
	if code != http.StatusBadRequest || !strings.Contains(body, "top") {
		t.Errorf("101 clients: %d %s", code, body)
	}
}

// TestOverviewIsWatched: pictures come as they are due, and whole; a change comes
// before the second is over, and the stream says why it ends.
func TestOverviewIsWatched(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	began := time.Now()
	lines := s.watch("/v1/overview:watch?top=1", nil)
	expect(t, lines, ": connected", "", "event: overview")
	picture := func() (p struct{ Alerts []struct{ Client string } }) {
		if !lines.Scan() {
			t.Fatalf("the stream ended: %v", lines.Err())
		}
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if err := json.Unmarshal([]byte(data), &p); !found || err != nil {
			t.Fatalf("%v in %q", err, lines.Text())
		}
		return p
	}
	if p := picture(); len(p.Alerts) != 0 {
		t.Fatalf("%v", p)
	}
	const hostile = "<img src=x onerror=alert(1)>"
	s.node.Ring.Publish(events.Event{Kind: events.ClientOverBudget, Severity: events.Warning, Client: hostile})
	expect(t, lines, "", "event: overview")
	if p := picture(); len(p.Alerts) != 1 || p.Alerts[0].Client != hostile || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v, want the client's alert", p, time.Since(began))
	}
	expect(t, lines, "")
	s.api.Drain()
	for lines.Scan() && lines.Text() != "event: error" {
	}
	expect(t, lines, "*SHUTTING_DOWN", "")
}

// TestOverviewIsForOperators: nobody else sees it, from no other page.
func TestOverviewIsForOperators(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, path := range []string{"/v1/overview", "/v1/overview:watch"} {
		code, _, _ := s.do(request{method: "GET", path: path, host: "evil.example"})
		if code != http.StatusMisdirectedRequest {
			t.Errorf("%s for a foreign host: %d", path, code)
		}
	}
	err := s.api.Overview(context.Background(), nil, false, nil)
	if e := server.ErrorOf(err); e.Cause.HTTP != http.StatusUnauthorized {
		t.Errorf("%v for nobody, want that there is no credential", err)
	}
}
