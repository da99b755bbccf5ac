package forwarding_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/forwarding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options are those of a command line, complete.
func options(t *testing.T, args ...string) *forwarding.Options {
	t.Helper()
	o := &forwarding.Options{Endpoints: []string{"127.0.0.1:1"}}
	flags := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
	o.Define(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := o.Complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

// written is a directory with files.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const configured = `listen: 127.0.0.1:1234
endpoints: ["10.0.0.1:7101"]
client: gateway-1
deployments:
  - {name: main, upstream: "https://api.openai.com", key_file: key, models: [a, b, c, d, e, f]}
  - name: own
    upstream: http://127.0.0.1:8000
    source: {verified_at: 2026-10-22}
classes: [{name: live, max_wait: none}, {name: batch, max_wait: 5m, closed: defer}, {name: other}]
clients:
  - {name: notes, tenant: team, classes: [live, batch], key_file: keys}
  - {name: edge, key_file: edge, any: true, may: [notes]}
`

func TestReport(t *testing.T) {
	t.Parallel()
	const drawn = "0123456789abcdef0123456789abcdef"
	dir := written(t, map[string]string{
		"gateway.yaml": configured, "key": "sk-1\n", "keys": drawn + "1\n" + drawn + "2\n", "edge": drawn,
	})
	o := options(t, "--config", filepath.Join(dir, "gateway.yaml"), "--admin", "127.0.0.1:0")
	var report bytes.Buffer
	if err := o.Report(&report, time.Date(2027, 5, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	want := `listen  127.0.0.1:1234, plaintext
admin   127.0.0.1:0
nodes   10.0.0.1:7101
client  gateway-1
asks    who has a key; known by their keys: 2

DEPLOYMENT  PROVIDER    UPSTREAM                KEY      MODELS
main        openai      https://api.openai.com  its own  a,b,c,d,e,… (6)
own         compatible  http://127.0.0.1:8000   none     all others

CLASS  MAX-WAIT  CLOSED
live   none      shed
batch  5m        defer
other  default   shed

CLIENT  TENANT  KEYS  CLASSES     MAY
notes   team    2     live,batch  -
edge    edge    1     -           any name
`
	got, warnings, _ := strings.Cut(report.String(), "\nwarning: ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// S3-48: what was looked up long ago is said.
	for _, want := range []string{
		"what is known of openai was last compared with ", "what is known of compatible was last compared with ",
		`deployments[1] "own": its figures were looked up on 2026-10-22, 191 days ago`,
	} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no %q in %q", want, warnings)
		}
	}
}

// TestReportCertificate: what Run would say of a certificate, a check says.
func TestReportCertificate(t *testing.T) {
	t.Parallel()
	dir := written(t, map[string]string{
		"gateway.yaml": "tls: {cert_file: missing.pem, key_file: missing.key}\n" +
			"deployments: [{name: a, provider: openai, upstream: 'https://api.openai.com'}]\n",
	})
	err := options(t, "--config", filepath.Join(dir, "gateway.yaml")).Report(io.Discard, time.Now())
	if err == nil || !strings.Contains(err.Error(), "missing.pem") || exit.Report(err, io.Discard) != exit.Usage {
		t.Errorf("%v, want the certificate that is missing", err)
	}
}

// log is what was logged, for a test to wait for.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	line chan struct{}
}

func newLog() *log { return &log{line: make(chan struct{}, 100)} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.line <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

// match waits for what a pattern's group matches.
func (l *log) match(t *testing.T, pattern string) string {
	t.Helper()
	compiled := regexp.MustCompile(pattern)
	for {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if found := compiled.FindStringSubmatch(text); found != nil {
			return found[1]
		}
		select {
		case <-l.line:
		case <-time.After(30 * time.Second):
			t.Fatalf("no %s in\n%s", pattern, text)
		}
	}
}

// certificate writes one for 127.0.0.1, and its key.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		text := pem.EncodeToMemory(block)
		pool.AppendCertsFromPEM(text)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// With a certificate programs are answered over TLS, by HTTP/2 where they speak it, and a
// gateway that is told to stop leaves nothing behind.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := written(t, map[string]string{"gateway.yaml": `listen: 127.0.0.1:0
tls: {cert_file: tls.crt, key_file: tls.key}
deployments: [{name: a, upstream: "https://127.0.0.1:1"}]
`})
	pool := certificate(t, dir)
	o := options(t, "--config", filepath.Join(dir, "gateway.yaml"), "--drain", "10s")
	out := newLog()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx, hclog.New(&hclog.LoggerOptions{Output: out})) }()
	address := out.match(t, `serving: listen=(\S+) nodes=127.0.0.1:1`)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	asker := http.Client{Transport: transport}
	answer, err := asker.Post("https://"+address+"/v1/chat/completions", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized || answer.ProtoMajor != 2 {
		t.Errorf("%s over %s: %s", answer.Status, answer.Proto, body)
	}
	// The alert comes from the client, through the same logger.
	out.match(t, `\[ERROR\] (ALERT): kind=FailOpenStarted`)
	transport.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	out.match(t, `told to stop: (drain=10s)`)
}

// Who runs it says that a spend cap was seen to; no page of a browser does.
func TestCleared(t *testing.T) {
	t.Parallel()
	o := options(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1")
	out := newLog()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx, hclog.New(&hclog.LoggerOptions{Output: out})) }()
	admin := out.match(t, `serving: listen=\S+ admin=(\S+)`)
	asker := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, one := range []struct {
		name, origin string
		want         int
	}{
		{"compatible", "", http.StatusNoContent},
		{"nobody", "", http.StatusNotFound},
		{"compatible", "https://elsewhere.example", http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+admin+"/cleared?deployment="+one.name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if one.origin != "" {
			r.Header.Set("Origin", one.origin)
		}
		answer, err := asker.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != one.want {
			t.Errorf("%+v: %s", one, answer.Status)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	out.match(t, `(a spend cap was cleared by hand): deployment=compatible`)
}

// What a file may say at its bounds, a gateway takes.
func TestBounds(t *testing.T) {
	t.Parallel()
	const deployment = "deployments: [{name: a, upstream: 'http://a', "
	for _, text := range []string{
		deployment + "output_max: 0, per_minute: {requests: 1}}]\ntries: 1\nbody_max: 1KiB\nbodies_max: 1KiB\n" +
			"retry_tokens: {cap: 1, cost: 1, refund: 0, free: 0/s}\nclasses: [{name: a, max_wait: 0s}]\n",
		deployment + "output_max: 2_147_483_647, per_minute: {requests: 9_007_199_254_740_992}}]\ntries: 10\n" +
			"body_max: 1GiB\nbodies_max: 1024GiB\ncoalesced_max: 1024GiB\nclasses: [{name: a, max_wait: 1h}]\n" +
			"retry_tokens: {cap: 9_007_199_254_740_992, cost: 9_007_199_254_740_992, free: 1_000_000/h}\n",
		deployment + "attributes: {" + strings.Join(attributes(26), ", ") + "}}]\n" +
			"attempts: {markers: [" + strings.Repeat("{header: x-a}, ", 25) + "{header: x-a}]}\n" +
			"circuit: {open: 6s, shared: {tenants: t, deployments: d, probes: p}}\n",
	} {
		dir := written(t, map[string]string{"gateway.yaml": text})
		if err := options(t, "-c", filepath.Join(dir, "gateway.yaml")).Report(io.Discard, time.Now()); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

func attributes(n int) (list []string) {
	for i := range n {
		list = append(list, "a"+string(rune('a'+i))+": b")
	}
	return list
}
