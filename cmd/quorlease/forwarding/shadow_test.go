package forwarding_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/cmd/quorlease/forwarding"
)

// get is a page of a server.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(page)
}

// TestShadowComesAndGoes is not parallel: the signal is the whole process's.
func TestShadowComesAndGoes(t *testing.T) {
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "there") }))
	defer behind.Close()
	text := "listen: 127.0.0.1:0\ndeployments: [{name: a, upstream: \"" + behind.URL + "\"}]\n"
	dir := written(t, map[string]string{"gateway.yaml": text})
	config := filepath.Join(dir, "gateway.yaml")
	o := options(t, "--config", config, "--admin", "127.0.0.1:0")
	out := newLog()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx, hclog.New(&hclog.LoggerOptions{Output: out})) }()
	address := out.match(t, `serving: listen=(\S+) `)
	admin := "http://" + out.match(t, `serving: .*admin=(\S+) `)
	for i, want := range []int{http.StatusUnauthorized, http.StatusOK, http.StatusUnauthorized} {
		if i > 0 {
			says := fmt.Sprintf("shadow: %t\n", want == http.StatusOK)
			if err := os.WriteFile(config, []byte(text+says), 0o600); err != nil {
				t.Fatal(err)
			}
			before := strings.Count(out.match(t, `(?s)(.*)`), "changed=shadow")
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			out.match(t, fmt.Sprintf(`(?s)((changed=shadow.*){%d})`, before+1))
		}
		// Nobody says who asks.
		if status, page := get(t, "http://"+address+"/v1/models"); status != want {
			t.Errorf("%d: %d %s, want %d", i, status, page, want)
		}
	}
	for form, want := range map[string]string{
		"": `"reason": "unidentified"`, "?format=csv": "\nrefused,unidentified,,,1,0,0,0\n",
		"?format=text": "shadow     is not one now\n",
	} {
		if status, page := get(t, admin+"/shadow"+form); status != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("%s: %d %s", form, status, page)
		}
	}
	if status, page := get(t, admin+"/shadow?format=xml"); status != http.StatusBadRequest ||
		page != "format: \"xml\" is none of text, json, csv\n" {
		t.Errorf("%d %s", status, page)
	}
	format, limit := "csv", time.Second
	var report string
	cmd := forwarding.ReportCommand(&format, &limit, func(page []byte) error {
		report = string(page)
		return nil
	})
	cmd.SetArgs([]string{"--admin", admin})
	if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(report, "refused,unidentified,") {
		t.Errorf("%v %s", err, report)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestShadowLendsNoKey: whoever reaches it would use what the gateway has.
func TestShadowLendsNoKey(t *testing.T) {
	t.Parallel()
	dir := written(t, map[string]string{
		"key": "SECRET-1\n", "keys": "0123456789abcdef0123456789abcdef",
		"gateway.yaml": "shadow: true\ndeployments: [{name: a, upstream: \"https://127.0.0.1:1\", key_file: key}]\n" +
			"clients: [{name: notes, key_file: keys}]\n",
	})
	for listen, want := range map[string]string{
		"127.0.0.1:0": `whoever asks would use the key of deployments[0] "a"`,
		"0.0.0.0:0":   `whoever asks would use the key of deployments[0] "a"`,
	} {
		o := &forwarding.Options{Endpoints: []string{"127.0.0.1:1"}}
		flags := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
		o.Define(flags)
		if err := flags.Parse([]string{
			"--config", filepath.Join(dir, "gateway.yaml"), "--listen", listen, "--insecure",
		}); err != nil {
			t.Fatal(err)
		}
		err := o.Complete(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", listen, err)
		}
	}
}
