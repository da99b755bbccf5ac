package forwarding_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/quorlease/quorlease/client/alert"
)

// receiver takes alerts.
func receiver(t *testing.T) (url string, got chan alert.Document) {
	t.Helper()
	got = make(chan alert.Document, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var d alert.Document
		if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
			t.Error(err)
		}
		got <- d
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

// next waits for one of a kind.
func next(t *testing.T, from chan alert.Document, kind, status string) alert.Document {
	t.Helper()
	for {
		select {
		case d := <-from:
			if d.Kind == kind && d.Status == status {
				return d
			}
			if d.Kind == kind {
				t.Errorf("%s is %s, want %s", kind, d.Status, status)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("nobody was told that %s is %s", kind, status)
		}
	}
}

// TestAlerts: people are called by what the nodes can't call them for, once an incident.
func TestAlerts(t *testing.T) {
	t.Parallel()
	t.Run("S3-27_once_an_incident", func(t *testing.T) {
		t.Parallel()
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"message":"You exceeded your current quota, please check your plan.",`+
				`"type":"insufficient_quota","code":"insufficient_quota"}}`)
		}))
		defer provider.Close()
		url, got := receiver(t)
		o := options(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", provider.URL,
			"--provider", "openai", "--alert-webhook", url)
		out := newLog()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx, hclog.New(&hclog.LoggerOptions{Output: out})) }()
		address := out.match(t, `serving: listen=(\S+) `)
		admin := out.match(t, `serving: listen=\S+ admin=(\S+)`)
		asker := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		post := func(url, body string) int {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Client-Id", "notes")
			answer, err := asker.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			return answer.StatusCode
		}
		next(t, got, "FailOpenStarted", "firing")
		for _, prompt := range []string{"a", "b", "c"} {
			body := `{"model":"gpt-4o","messages":[{"role":"user","content":"` + prompt + `"}]}`
			if code := post("http://"+address+"/v1/chat/completions", body); code != http.StatusTooManyRequests {
				t.Errorf("%d", code)
			}
		}
		begun := next(t, got, "SpendCapReached", "firing")
		if begun.Name != "gateway" || begun.Severity != "critical" || begun.Labels["deployment"] != "openai" ||
			begun.Values["reason"] != "insufficient_quota" {
			t.Errorf("%+v", begun)
		}
		if code := post("http://"+admin+"/cleared?deployment=openai", ""); code != http.StatusNoContent {
			t.Errorf("%d", code)
		}
		// A second beginning would have come before the end.
		over := next(t, got, "SpendCapReached", "resolved")
		if diff := cmp.Diff(begun.ID, over.ID); diff != "" {
			t.Errorf("the end is another one's (-want +got):\n%s", diff)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
