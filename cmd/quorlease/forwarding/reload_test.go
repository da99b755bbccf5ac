package forwarding_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// TestHangup is not parallel: the signal is the whole process's.
func TestHangup(t *testing.T) {
	const before = `listen: 127.0.0.1:0
tls: {cert_file: tls.crt, key_file: tls.key}
deployments:
  - {name: a, upstream: "https://127.0.0.1:1", key_file: key}
  - {name: b, upstream: "https://127.0.0.1:1", models: [b]}
clients: [{name: notes, key_file: notes.key}]
`
	dir := written(t, map[string]string{"gateway.yaml": before, "key": "SECRET-1\n", "notes.key": "SECRET-0123456789\n"})
	pool := certificate(t, dir)
	config := filepath.Join(dir, "gateway.yaml")
	o := options(t, "--config", config)
	out := newLog()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx, hclog.New(&hclog.LoggerOptions{Output: out})) }()
	address := out.match(t, `serving: listen=(\S+) `)
	status := func() int {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+"/v1/chat/completions",
			strings.NewReader("not JSON"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer SECRET-0123456789")
		answer, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name, text, says string
		want             int
	}{
		{"nothing", before, `read the file again: changed=(nothing)`, http.StatusBadRequest},
		{
			"fixed",
			strings.Replace(before, "127.0.0.1:0", "127.0.0.1:9", 1) + "admin: 127.0.0.1:10\nhash_key_file: notes.key\n",
			`the file is not taken, .*(listen, admin, hash_key_file: can't change while it runs)`, http.StatusBadRequest,
		},
		{
			"clients that are gone", strings.Split(before, "clients:")[0],
			`the file is not taken, .*(clients \(from none or to none\): can't change while it runs)`, http.StatusBadRequest,
		},
		{
			"wrong", before + "tries: 99\n",
			`the file is not taken, .*(tries: 99 is out of range 1..10)`, http.StatusBadRequest,
		},
		{
			"a key file that is gone", strings.Replace(before, "key_file: key", "key_file: gone", 1),
			`the file is not taken, .*(deployments\[0\].key_file: open)`, http.StatusBadRequest,
		},
		{
			"clients", strings.NewReplacer("{name: b, ", "{name: c, ", "name: notes", "name: other", "notes.key", "other.key").
				Replace(before) + "tries: 2\n",
			`read the file again: changed="(deployments \+c -b; clients \+other -notes; tries)"`, http.StatusUnauthorized,
		},
	} {
		if err := os.WriteFile(filepath.Join(dir, "other.key"), []byte("another-0123456789"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(config, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		// Another certificate, which whoever connects from now on gets.
		renewed := certificate(t, dir)
		if err := self.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if out.match(t, step.says); !strings.Contains(step.says, "not taken") {
			pool = renewed
		}
		if got := status(); got != step.want {
			t.Errorf("%s: %d, want %d", step.name, got, step.want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Contains(out.text.String(), "SECRET") {
		t.Errorf("a secret is logged:\n%s", out.text.String())
	}
}

// TestHangupThatBlocks is not parallel, either: a file that is never read to its end keeps nothing from stopping.
func TestHangupThatBlocks(t *testing.T) {
	dir := written(t, map[string]string{"key": "SECRET-1\n", "gateway.yaml": `listen: 127.0.0.1:0
deployments: [{name: a, upstream: "https://127.0.0.1:1", key_file: key}]
`})
	o := options(t, "--config", filepath.Join(dir, "gateway.yaml"))
	out := newLog()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx, hclog.New(&hclog.LoggerOptions{Output: out})) }()
	out.match(t, `serving: listen=(\S+) `)
	key := filepath.Join(dir, "key")
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(key, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	// It opens once somebody reads, who then waits for what is never written.
	pipe, err := os.OpenFile(key, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it does not stop")
	}
	pipe.Close()
	out.match(t, `(the file is not taken)`)
}
