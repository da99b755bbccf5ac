package embedded_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limitsOf writes a limits file.
func limitsOf(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens an authority until the test is over.
func open(t testing.TB, config embedded.Config) *embedded.Authority {
	t.Helper()
	a, err := embedded.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// ask is a client of it.
func ask(t testing.TB, a *embedded.Authority) *client.Client {
	t.Helper()
	c, err := a.Client(client.Config{Client: "notes", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// of asks for so many requests of a limit.
func of(limit string, n int64) client.Request {
	return client.Request{Charges: []client.Charge{{Limit: limit, Dimension: "requests", Amount: n}}}
}

// passed is how many of n acquires of one request are granted by the authority. Those that the client
// decides by itself are an error.
func passed(t *testing.T, c *client.Client, limit string, n int) (granted int) {
	t.Helper()
	for range n {
		d, err := c.Acquire(t.Context(), of(limit, 1))
		if err != nil || d.Source == client.Local {
			t.Fatalf("%+v, %v: want the authority's answer", d, err)
		}
		if d.Granted {
			granted++
		}
	}
	return granted
}

const hourly = "limits: [{name: api, rate: {requests: 20/h}, burst: {requests: 20}, max_debt: 1h}]\n"

// TestOneProcess: what a program is told by the authority inside of it, over restarts.
func TestOneProcess(t *testing.T) {
	t.Parallel()
	t.Run("S3-38_it_goes_on_from_its_directory", testOneProcess)
}

func testOneProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	config := embedded.Config{Dir: dir, Limits: limitsOf(t, hourly)}
	session := func(run func(*embedded.Authority, *client.Client)) {
		t.Helper()
		a, err := embedded.Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		c := ask(t, a)
		run(a, c)
		if err := errors.Join(c.Close(), a.Close(), a.Close()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-a.Done():
		default:
			t.Error("it is closed, and not done")
		}
	}
	var lease client.Lease
	session(func(_ *embedded.Authority, c *client.Client) {
		if n := passed(t, c, "api", 5); n != 5 {
			t.Errorf("%d of 5 were granted", n)
		}
		request := of("api", 10)
		request.Track = true
		d, err := c.Acquire(t.Context(), request)
		if err != nil || !d.Granted || d.Source == client.Local {
			t.Fatalf("%+v, %v: want a lease", d, err)
		}
		lease = d.Lease
	})
	// A settled excess is a debt, which is there after another restart.
	session(func(_ *embedded.Authority, c *client.Client) {
		settled, err := c.Settle(t.Context(), lease, client.Usage{Dimension: "requests", Used: 30})
		if err != nil || len(settled.Charges) != 1 || settled.Charges[0].Excess != 20 {
			t.Fatalf("%+v, %v: want an excess of 20", settled, err)
		}
	})
	session(func(_ *embedded.Authority, c *client.Client) {
		if n := passed(t, c, "api", 3); n != 0 {
			t.Errorf("%d were granted on top of a debt", n)
		}
		d, err := c.Peek(t.Context(), "", of("api", 1).Charges...)
		if err != nil || len(d.Remaining) != 1 || d.Remaining[0].Amount > -14 {
			t.Errorf("%+v, %v: want a debt of some 15", d, err)
		}
	})
}

// TestReload: all of a file counts, or nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	config := embedded.Config{Dir: t.TempDir(), Limits: limitsOf(t, hourly)}
	a := open(t, config)
	c := ask(t, a)
	write := func(text string) (int, error) {
		t.Helper()
		if err := os.WriteFile(config.Limits, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return a.Reload(t.Context())
	}
	if n, err := a.Reload(t.Context()); n != 0 || err != nil {
		t.Errorf("the same file: %d changes, %v", n, err)
	}
	n, err := write("limits: [{name: api, rate: {requests: 20/h}, burst: {requests: 40}}, {name: b, unlimited: true}]\n")
	if n != 2 || err != nil {
		t.Errorf("%d changes, %v: want 2", n, err)
	}
	_, err = write("limits: [{name: c, unlimited: true}, {name: api, rate: {requests: 1}}]\n")
	if err == nil || !strings.Contains(err.Error(), config.Limits) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line with the place in the file", err)
	}
	if n := passed(t, c, "b", 1); n != 1 {
		t.Error("a file that was wrong has changed something")
	}
	if n, err := write("limits: [{name: c, unlimited: true}]\n"); n != 3 || err != nil {
		t.Errorf("%d changes, %v: want two limits less and one more", n, err)
	}
	if _, err := c.Acquire(t.Context(), of("b", 1)); err == nil {
		t.Error("b counts, which the file does not name any more")
	}
	if n := passed(t, c, "c", 1); n != 1 {
		t.Error("c does not count")
	}
}

// TestRefused: each mistake is one line that names what is wrong, and leaves nothing behind.
func TestRefused(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(base, "fresh")
	wrong := limitsOf(t, "limits: [{name: A, unlimited: true}]\n")
	for name, row := range map[string]struct {
		config embedded.Config
		want   string
	}{
		"no directory":     {embedded.Config{}, "dir is empty"},
		"no place for one": {embedded.Config{Dir: filepath.Join(file, "below")}, filepath.Join(file, "below")},
		"a file":           {embedded.Config{Dir: file}, "is not a directory"},
		"no limits":        {embedded.Config{Dir: fresh, Limits: filepath.Join(base, "none")}, "none"},
		"wrong limits":     {embedded.Config{Dir: fresh, Limits: wrong}, "limits.yaml:1:"},
		"everybody":        {embedded.Config{Dir: fresh, Listen: "0.0.0.0:0"}, "listen: 0.0.0.0:0 is not on loopback"},
		"no port":          {embedded.Config{Dir: fresh, HTTP: "127.0.0.1"}, "http: "},
		"no name":          {embedded.Config{Dir: fresh, ID: "A"}, `"A"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := embedded.Open(t.Context(), row.config)
			if err == nil {
				_ = a.Close()
			}
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, row.want)
			}
			if _, err := os.Stat(fresh); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the directory: %v, want none", err)
			}
		})
	}
}

// TestFromOutside: commands on this machine may ask where it listens.
func TestFromOutside(t *testing.T) {
	t.Parallel()
	a := open(t, embedded.Config{
		Dir: t.TempDir(), Limits: limitsOf(t, hourly), Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0",
	})
	c, err := client.New(client.Config{
		Endpoints: []string{a.Addr()}, Client: "other", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if n := passed(t, c, "api", 15) + passed(t, ask(t, a), "api", 15); n != 20 {
		t.Errorf("%d were granted inside and outside together, want 20", n)
	}
	for path, want := range map[string]string{"/metrics": "quorlease_has_quorum 1\n", "/": "<html"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.HTTPAddr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: %v, no %q in %.200q", path, err, want, body)
		}
	}
}
