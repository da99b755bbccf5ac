package forwarding_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
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

const oneLimit = "limits: [{name: main, match: {deployment: \"*\"}, rate: {requests: 60/min}}]\n"

// TestEmbeddedRefused: one line each, before a directory is made or a port opened.
func TestEmbeddedRefused(t *testing.T) {
	t.Parallel()
	dir := written(t, map[string]string{
		"limits.yaml": oneLimit, "wrong.yaml": "limits: [{name: main}]\n",
		"gateway.yaml": "endpoints: [\"127.0.0.1:7101\"]\ndeployments: [{name: main, upstream: \"http://127.0.0.1:1\"}]\n",
	})
	state := filepath.Join(dir, "state")
	embedded := []string{"--authority", "embedded", "--data", state}
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"who":       {[]string{"--authority", "me"}, `--authority "me": must be cluster or embedded`},
		"no data":   {[]string{"--authority", "embedded"}, "--authority embedded needs --data"},
		"alone":     {[]string{"--limits", "x"}, "--limits is for --authority embedded"},
		"limits":    {append(embedded, "--limits", filepath.Join(dir, "wrong.yaml")), "wrong.yaml:1:10: "},
		"none":      {append(embedded, "--limits", filepath.Join(dir, "none")), "none"},
		"everybody": {append(embedded, "--authority-listen", "0.0.0.0:0"), "--authority-listen 0.0.0.0:0"},
		"no port":   {append(embedded, "--authority-http", "127.0.0.1"), "--authority-http"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &forwarding.Options{Endpoints: []string{"127.0.0.1:1"}}
			flags := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
			flags.StringSlice("endpoints", nil, "")
			o.Define(flags)
			if err := flags.Parse(append([]string{"--upstream", "http://127.0.0.1:1"}, row.args...)); err != nil {
				t.Fatal(err)
			}
			if err := o.Complete(t.Context()); err == nil || !strings.Contains(err.Error(), row.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, row.want)
			}
			if _, err := os.Stat(state); err == nil {
				t.Error("a directory was made")
			}
		})
	}
	t.Run("two authorities", func(t *testing.T) {
		t.Parallel()
		for _, more := range [][]string{
			{"--upstream", "http://127.0.0.1:1", "--endpoints", "127.0.0.1:7101"},
			{"--config", filepath.Join(dir, "gateway.yaml")},
		} {
			o := &forwarding.Options{}
			flags := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
			flags.StringSlice("endpoints", nil, "")
			o.Define(flags)
			if err := flags.Parse(append(more, embedded...)); err != nil {
				t.Fatal(err)
			}
			if err := o.Complete(t.Context()); err == nil || !strings.Contains(err.Error(), "endpoints") {
				t.Errorf("%q: %v, want that both were named", more, err)
			}
		}
	})
}

// TestEmbeddedHangup is not parallel: the signal is the whole process's.
func TestEmbeddedHangup(t *testing.T) {
	dir := written(t, map[string]string{"limits.yaml": oneLimit})
	limits, state := filepath.Join(dir, "limits.yaml"), filepath.Join(dir, "state")
	o := options(t, "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--authority", "embedded", "--data", state, "--limits", limits)
	var report bytes.Buffer
	if err := o.Report(&report, time.Now()); err != nil || !strings.Contains(report.String(), "this process, in "+state) {
		t.Errorf("%v, the report says\n%s", err, report.String())
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("to say what it would do it has made a directory")
	}
	out := newLog()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx, hclog.New(&hclog.LoggerOptions{Output: out})) }()
	admin := out.match(t, `serving: .*admin=(\S+) `)
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ text, says string }{
		{"limits: [{name: main}]\n", `the limits are not taken, .*(limits.yaml:1:10: limits)`},
		{strings.Replace(oneLimit, "60/min", "90/min", 1), `read the limits again: changes=(1)`},
	} {
		if err := os.WriteFile(limits, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := self.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		out.match(t, step.says)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	figures, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	for _, want := range []string{"\nquorlease_has_quorum 1\n", "\nquorlease_client_fail_open 0\n"} {
		if err != nil || !strings.Contains(string(figures), want) {
			t.Errorf("%v, no %q in the figures", err, strings.TrimSpace(want))
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
