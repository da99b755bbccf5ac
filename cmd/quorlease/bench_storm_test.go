package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchStorm runs the smallest scenario, as text and as JSON, and compares
// with what scripts rely on.
func TestBenchStorm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	html, svg := filepath.Join(dir, "page.html"), filepath.Join(dir, "plots.svg")
	for _, format := range []string{"text", "json"} {
		got := command(t, "bench", "storm", "--scenario", "s3-demo", "-o", format, "--html", html, "--svg", svg)
		if got.code != 0 || got.stderr != "1 of 1: s3-demo\n" {
			t.Fatalf("exit code %d, stderr %q", got.code, got.stderr)
		}
		version, err := json.Marshal(thisBuild().Version)
		if err != nil {
			t.Fatal(err)
		}
		compareGolden(t, "bench-storm."+format, strings.Replace(got.stdout, string(version), `"(version)"`, 1))
	}
	for file, want := range map[string]string{html: "every figure is in its range", svg: "</svg>"} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v", file, want, err)
		}
	}
}

func TestBenchStormUsage(t *testing.T) {
	t.Parallel()
	if got := command(t, "bench", "storm", "--list"); got.code != 0 || !strings.Contains(got.stdout, "\ns3-after ") ||
		!strings.Contains(got.stdout, "(beside s3-first-wave, s3-sustained)") {
		t.Errorf("exit code %d, %s", got.code, got.stdout)
	}
	for _, row := range []struct {
		want string
		args []string
	}{
		{`quorlease: --scenario: "s4" is none of s3-first-wave, `, []string{"--scenario", "s4"}},
		{`quorlease: --real: --scenario "s3-demo" is none of s3-after-gat`, []string{"--real", "--scenario", "s3-demo"}},
		{`quorlease: --real: --played leaves out `, []string{"--real", "--played"}},
		{`quorlease: --seed "-1": `, []string{"--seed", "-1"}},
		{`quorlease: --output "yaml" is none of text, json`, []string{"-o", "yaml"}},
	} {
		got := command(t, append([]string{"bench", "storm"}, row.args...)...)
		if got.code != 2 || !strings.HasPrefix(got.stderr, row.want) {
			t.Errorf("%v: exit code %d, stderr %q, want 2 and %q", row.args, got.code, got.stderr, row.want)
		}
	}
	got := command(t, "bench", "storm", "--scenario", "s3-demo", "--html", filepath.Join(t.TempDir(), "no", "page.html"))
	if got.code != 1 || !strings.Contains(got.stderr, "quorlease: --html: ") {
		t.Errorf("a page that can't be written: exit code %d, stderr %q", got.code, got.stderr)
	}
}
