package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	startedAt = time.Date(2026, 3, 1, 2, 0, 0, 500, time.FixedZone("", 3600))
	endedAt   = startedAt.Add(90 * time.Second)
)

func example() Alert {
	return Alert{
		Kind: "QuorumLost", Name: "n1", ID: "i1", Severity: Critical, Started: startedAt,
		Text: "no quorum: 1 of 3 voters are within reach", Link: "http://127.0.0.1:7301",
		Labels: map[string]string{"cluster": "a-b", "2nd zone": "eu", "none": ""},
		Values: map[string]string{"reached": "1"},
	}
}

func exampleEnd() Alert {
	return endOf(example(), Alert{Ended: endedAt, Text: "3 of 3", Values: map[string]string{"reached": "3"}})
}

// receiver is a server that keeps what was posted to it.
type receiver struct {
	*httptest.Server
	requests []*http.Request
	bodies   []string
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		r.requests, r.bodies = append(r.requests, q), append(r.bodies, string(body))
		if answer != nil {
			answer(w, q)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// with puts something in front of the host.
func (r *receiver) with(userinfo string) string {
	return strings.Replace(r.URL, "//", "//"+userinfo, 1)
}

func mustSink(t *testing.T, s Sink, err error) Sink {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWebhookDocument(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	s, err := Webhook(r.with("ops:pa55@") + "/hook?token=t0ken")
	s = mustSink(t, s, err)
	for _, a := range []Alert{example(), exampleEnd()} {
		if err := s.Send(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	const common = `"kind":"QuorumLost","name":"n1","id":"i1","severity":"critical",` +
		`"started":"2026-03-01T01:00:00.0000005Z",`
	const labels = `"labels":{"2nd zone":"eu","cluster":"a-b","none":""},`
	const tail = `"link":"http://127.0.0.1:7301","runbook":"docs/operating/alerts.md#quorumlost"}`
	want := []string{
		`{"version":1,"status":"firing",` + common +
			`"text":"no quorum: 1 of 3 voters are within reach",` + labels + `"values":{"reached":"1"},` + tail,
		`{"version":1,"status":"resolved",` + common + `"ended":"2026-03-01T01:01:30.0000005Z","text":"3 of 3",` +
			labels + `"values":{"reached":"3"},` + tail,
	}
	if diff := cmp.Diff(want, r.bodies); diff != "" {
		t.Errorf("posted (-want +got):\n%s", diff)
	}
	q := r.requests[0]
	user, password, _ := q.BasicAuth()
	if q.Method != http.MethodPost || q.URL.String() != "/hook?token=t0ken" || user != "ops" || password != "pa55" ||
		q.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %v", q.Method, q.URL, q.Header)
	}
}

func TestAlertmanagerDocument(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	s, err := Alertmanager(r.URL + "/prefix/")
	s = mustSink(t, s, err)
	for _, a := range []Alert{example(), exampleEnd()} {
		if err := s.Send(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := r.requests[0].URL.Path, "/prefix/api/v2/alerts"; got != want {
		t.Errorf("path %s, want %s", got, want)
	}
	labels := map[string]string{
		"alertname": "QuorumLost", "severity": "critical", "name": "n1", "incident": "i1",
		"cluster": "a-b", "_2nd_zone": "eu",
	}
	var got [2][]postable
	for i, body := range r.bodies {
		if err := json.Unmarshal([]byte(body), &got[i]); err != nil || len(got[i]) != 1 {
			t.Fatalf("%v: %s", err, body)
		}
		if diff := cmp.Diff(labels, got[i][0].Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
		if !got[i][0].StartsAt.Equal(startedAt) || got[i][0].GeneratorURL != "http://127.0.0.1:7301" {
			t.Errorf("%+v", got[i][0])
		}
	}
	open, over := got[0][0], got[1][0]
	if ahead := time.Until(open.EndsAt); ahead <= 4*alertmanagerRepeat || ahead > alertmanagerLife {
		t.Errorf("an open incident ends %s from now, want %s", ahead, alertmanagerLife)
	}
	if !over.EndsAt.Equal(endedAt) {
		t.Errorf("ended at %s, want %s", over.EndsAt, endedAt)
	}
	want := map[string]string{
		"summary": "3 of 3", "runbook": "docs/operating/alerts.md#quorumlost", "reached": "3",
	}
	if diff := cmp.Diff(want, over.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if again, err := Alertmanager(r.URL + "/api/v2/alerts"); err != nil ||
		!strings.HasSuffix(again.(alertmanager).url, ":"+strings.Split(r.URL, ":")[2]+"/api/v2/alerts") {
		t.Errorf("a full path is kept: %v, %v", again, err)
	}
}

func TestLogHasOneLineEach(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := Log(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey && len(groups) == 0 {
				return slog.Attr{}
			}
			return a
		},
	})))
	for _, a := range []Alert{example(), exampleEnd()} {
		if err := s.Send(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	const labels = `"labels.2nd zone"=eu labels.cluster=a-b labels.none="" `
	const id = ` kind=QuorumLost name=n1 id=i1 severity=critical text=`
	want := `level=ERROR msg=ALERT` + id + `"no quorum: 1 of 3 voters are within reach" ` +
		`started=2026-03-01T02:00:00.000+01:00 ` + labels + "values.reached=1\n" +
		`level=INFO msg=RESOLVED` + id + `"3 of 3" ` +
		`started=2026-03-01T02:00:00.000+01:00 took=1m30s ` + labels + "values.reached=3\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
}

func TestURLsAreCheckedAndTheirSecretsKept(t *testing.T) {
	t.Parallel()
	cases := []struct{ url, want string }{
		{"", `URL "": empty`},
		{"ftp://h/x", `URL "ftp://h/x": the scheme "ftp" is neither http nor https`},
		{"127.0.0.1:9093", `URL "127.0.0.1:9093": not a URL, want http://host:port/path`},
		{"hooks.example.com/x", `URL "hooks.example.com/x": the scheme "" is neither`},
		{"http://", `URL "http://": no host`},
		{"http://h/x#frag", `URL "http://h/x#…": a fragment is not sent`},
		{"ftp://SECRET:SECRET@h/x?t=SECRET", `URL "ftp://…@h/x?…": the scheme`},
		{"http://SECRET:SEC%ZZRET@h/x", `URL "http://…@h/x": not a URL`},
		{"http://SECRET:SECRET@h:port/x#SECRET", `URL "http://…@h:port/x#…": not a URL`},
		{"SECRET:SECRET@h", `URL "…@h": `},
		{"http://h/\x00", `URL "http://h/\x00": not a URL`},
		{"http://h/" + strings.Repeat("x", 2048), `URL of 2057 bytes, at most 2048`},
	}
	for _, c := range cases {
		for _, open := range []func(string) (Sink, error){Webhook, Alertmanager} {
			_, err := open(c.url)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%q: %v, want %s", c.url, err, c.want)
			}
		}
	}
}

func TestFailuresShowNoSecrets(t *testing.T) {
	t.Parallel()
	closed := newReceiver(t, nil)
	closed.Close()
	refusing := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no "+strings.Repeat("x", 5000), http.StatusBadRequest)
	})
	redirecting := newReceiver(t, func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "/elsewhere", http.StatusTemporaryRedirect)
	})
	hanging := newReceiver(t, func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
	for _, c := range []struct {
		r    *receiver
		want string
	}{
		{closed, "connection refused"},
		{refusing, `: answered 400 Bad Request: "no xxx`},
		{redirecting, ": answered 307 Temporary Redirect"},
		{hanging, "context deadline exceeded"},
	} {
		s, err := Webhook(c.r.with("SECRET:SECRET@") + "/SECRET?token=SECRET")
		s = mustSink(t, s, err)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err = s.Send(ctx, example())
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") ||
			!strings.HasPrefix(err.Error(), "webhook "+c.r.URL+": ") || len(err.Error()) > 400 {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if got := len(redirecting.requests); got != 1 {
		t.Errorf("%d requests, want 1: a redirect is not followed", got)
	}
}
