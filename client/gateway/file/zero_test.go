package file_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/coalesce"
	"github.com/quorlease/quorlease/client/gateway/file"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

func TestGuess(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"api.openai.com": provider.NameOpenAI, "API.OpenAI.com.": provider.NameOpenAI,
		"api.anthropic.com":                       provider.NameAnthropic,
		"east.openai.azure.com":                   provider.NameAzure,
		"generativelanguage.googleapis.com":       provider.NameGemini,
		"europe-west1-aiplatform.googleapis.com":  provider.NameVertex,
		"aiplatform.googleapis.com":               provider.NameVertex,
		"bedrock-runtime.eu-west-1.amazonaws.com": provider.NameBedrock,
		"bedrock-runtime.evil.org":                provider.NameCompatible,
		"openai.azure.com":                        provider.NameCompatible,
		"notapi.openai.com":                       provider.NameCompatible,
		"api.openai.com.evil.org":                 provider.NameCompatible,
		"127.0.0.1":                               provider.NameCompatible,
	} {
		if got := file.Guess(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

func TestZero(t *testing.T) {
	t.Parallel()
	f, err := file.Zero("https://api.openai.com", "")
	if err != nil {
		t.Fatal(err)
	}
	d := f.Gateway.Deployments[0]
	if len(f.Gateway.Deployments) != 1 || d.Name != "openai" || d.Provider.Name != "openai" || d.Key != "" ||
		d.Upstream.Host != "api.openai.com" || len(f.Warnings) > 0 || len(f.Who.Clients) > 0 {
		t.Errorf("%+v", f)
	}
	f, err = file.Zero("http://127.0.0.1:1234", "anthropic")
	if err != nil || f.Gateway.Deployments[0].Provider.Name != "anthropic" {
		t.Errorf("%+v, %v", f, err)
	}
	for _, row := range [][3]string{
		{"api.openai.com", "", `upstream: "api.openai.com" is no http or https address`},
		{"https://u:hunter2@a", "", "upstream: has a user or a password, which belongs into key_file or key_env"},
		{"https://a", "acme", `provider: "acme": must be one of`},
	} {
		if _, err := file.Zero(row[0], row[1]); err == nil || !strings.Contains(err.Error(), row[2]) {
			t.Errorf("%s: %v, want %s", row[0], err, row[2])
		}
	}
}

// What is allowed and hardly meant is said.
func TestWarnings(t *testing.T) {
	t.Parallel()
	f, err := file.Parse("g.yaml", []byte(`deployments:
  - {name: a, upstream: "https://api.openai.com/v1/"}
  - {name: b, upstream: "http://10.0.0.1:80", key_env: OPENAI_API_KEY}
  - {name: c, upstream: "http://127.0.0.1:80", key_env: OPENAI_API_KEY}
classes: [{name: live}]
clients: [{name: x, classes: [live, bach], key_sha256: [`+someHash+`]}]
`), secrets(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`deployments[0] "a": upstream ends in /v1: whoever asks for /v1/chat/completions is sent to /v1/v1/chat/completions`,
		`deployments[0] "a": has no key, and the keys of clients are not passed on: the provider will refuse`,
		`deployments[1] "b": sends its key to 10.0.0.1:80 without TLS`,
		`clients[0] "x": the class "bach" is not among classes: it waits like the first of them, "live"`,
	}
	if !slices.Equal(f.Warnings, want) {
		t.Errorf("%q", f.Warnings)
	}
}

func TestStale(t *testing.T) {
	t.Parallel()
	f, err := file.Parse("g.yaml", []byte(`deployments:
  - {name: a, upstream: "https://api.openai.com", source: {verified_at: 2026-10-22}}
  - {name: b, upstream: "https://api.openai.com"}
`), secrets(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("S3-48", func(t *testing.T) {
		t.Parallel()
		looked := time.Date(2026, 10, 22, 0, 0, 0, 0, time.UTC)
		seen, age := f.Gateway.Deployments[0].Provider.Oldest(looked)
		compared := looked.Add(-age)
		if stale := f.Stale(compared.Add(file.StaleAfter)); len(stale) > 0 {
			t.Errorf("within %v: %q", file.StaleAfter, stale)
		}
		table := f.Stale(compared.Add(file.StaleAfter + time.Nanosecond))
		if len(table) != 1 || !strings.HasPrefix(table[0], "what is known of openai was last compared with ") ||
			!strings.HasSuffix(table[0], " on "+seen.On+", 180 days ago") {
			t.Errorf("%q", table)
		}
		both := f.Stale(looked.Add(file.StaleAfter + 24*time.Hour))
		if len(both) != 2 || both[1] != `deployments[0] "a": its figures were looked up on 2026-10-22, 181 days ago` {
			t.Errorf("%q", both)
		}
	})
}

// What the file allows at its bounds, the parts take.
func TestBoundsAreThoseOfTheParts(t *testing.T) {
	t.Parallel()
	for _, tuning := range []string{
		"{attempts: {remembered: 1s, entries: 256}, circuit: {throttles: 1, least: 1, fraction: 0.01%, window: 1s," +
			" open: 1s, hint_max: 1s}, coalesced_max: 1MiB",
		"{attempts: {remembered: 1h, entries: 16_777_216}, circuit: {throttles: 100, least: 1_048_576," +
			" fraction: 100%, window: 1h, open: 1h, hint_max: 24h}, coalesced_max: 1024GiB",
		"{circuit: {throttles: none, fraction: none}",
	} {
		f, err := file.Parse("g.yaml", []byte(tuning+", deployments: [{name: a, upstream: 'http://a'}]}"), secrets(nil))
		if err != nil {
			t.Fatal(err)
		}
		_, wrong := attempt.NewTable(f.Gateway.Attempts)
		if wrong != nil {
			t.Error(wrong)
		}
		if _, wrong = circuit.New(f.Gateway.Circuits); wrong != nil {
			t.Error(wrong)
		}
		if _, wrong = canon.New(f.Gateway.Hashes); wrong != nil {
			t.Error(wrong)
		}
		group, wrong := coalesce.New[int](f.Gateway.Shared)
		if wrong != nil {
			t.Fatal(wrong)
		}
		group.Close()
	}
}

// A file with as many clients as there may be is read.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("deployments: [{name: a, upstream: 'http://a'}]\nclients:\n")
	for i := range 16_384 {
		fmt.Fprintf(&text, "  - {name: client-%d, tenant: tenant-%d, key_sha256: [%064d]}\n", i, i/4, i)
	}
	f, err := file.Parse("g.yaml", []byte(text.String()), secrets(nil))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.Who.Clients); n != 16_384 {
		t.Errorf("%d clients", n)
	}
	more := "deployments: [{name: a, upstream: 'http://a'}]\nclients:\n" + strings.Repeat("  - {}\n", 16_385)
	_, err = file.Parse("g.yaml", []byte(more), secrets(nil))
	if err == nil || !strings.Contains(err.Error(), "g.yaml:3:3: clients: 16385, more than 16384") {
		t.Error(err)
	}
}
