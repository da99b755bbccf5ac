package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// limitsYAML is a small limits file.
const limitsYAML = `limits:
  - name: demo
    rate: {requests: 10/min}
    burst: {requests: 5}
retry_budgets:
  - name: default
    match: {client: "*"}
`

// TestGolden compares every answer, as text and as JSON, with the file that
// scripts and the reference rely on.
func TestGolden(t *testing.T) {
	t.Parallel()
	granted := startFake(t, fullFake())
	refusing := fullFake()
	refusing.acquire = deniedAnswer()
	denied := startFake(t, refusing)
	kinds := startFake(t, kindsFake())
	for _, row := range []struct {
		name     string
		node     *fakeNode
		stdin    string
		args     []string
		wantCode int
	}{
		{name: "acquire-granted", args: []string{"acquire", "llm/team-a", "demo", "requests=5"}},
		{name: "acquire-denied", node: denied, args: []string{"acquire", "demo", "llm/team-a"}, wantCode: 3},
		{
			name: "acquire-waited", node: kinds,
			args: []string{"acquire", "--attr", "tenant=a", "input_tokens=5", "--wait", "2s"},
		},
		{name: "settle", args: []string{"settle", someLease, "input_tokens=1500"}},
		{name: "release", args: []string{"release", someLease}},
		{name: "renew", args: []string{"renew", someLease, "--ttl", "30s"}},
		{name: "limits-apply", stdin: limitsYAML, args: []string{"limits", "apply", "-f", "-"}},
		{name: "limits-get", args: []string{"limits", "get"}},
		{name: "limits-diff", stdin: limitsYAML, args: []string{"limits", "diff", "-f", "-"}, wantCode: 1},
		{name: "limits-validate", stdin: limitsYAML, args: []string{"limits", "validate", "-f", "-"}},
		{name: "limits-delete", args: []string{"limits", "delete", "llm"}},
		{name: "limits-history", args: []string{"limits", "history"}},
		{name: "limits-rollback", args: []string{"limits", "rollback", "7"}},
		{name: "inspect", args: []string{"inspect", "llm/team-a"}},
		{name: "inspect-slots", node: kinds, args: []string{"inspect", "tenant-inflight/a"}},
		{name: "limits-get-kinds", node: kinds, args: []string{"limits", "get"}},
		{name: "adjust-clear", args: []string{"adjust", "llm/team-a", "clear-block", "--reason", "paid"}},
		{name: "adjust", args: []string{"adjust", "llm/team-a", "requests=reset", "--reason", "a test"}},
		{name: "keys", args: []string{"keys", "llm"}},
		{name: "clients", args: []string{"clients"}},
		{name: "events", args: []string{"events"}},
		{name: "cluster-status", args: []string{"cluster", "status"}},
		{name: "cluster-add", args: []string{"cluster", "add", "n4", "10.0.0.4:7201"}},
		{name: "cluster-remove", args: []string{"cluster", "remove", "n4"}},
		{name: "cluster-promote", args: []string{"cluster", "promote", "n4"}},
		{name: "cluster-demote", args: []string{"cluster", "demote", "n1"}},
		{name: "cluster-transfer", args: []string{"cluster", "transfer-leader"}},
	} {
		node := row.node
		if node == nil {
			node = granted
		}
		for _, format := range []string{"text", "json"} {
			t.Run(row.name+"/"+format, func(t *testing.T) {
				t.Parallel()
				args := append([]string{"--endpoints", node.addr, "-o", format}, row.args...)
				got := commandWith(t, t.Context(), row.stdin, args...)
				if got.code != row.wantCode || got.stderr != "" {
					t.Fatalf("%v: exit code %d, want %d; stderr %q", args, got.code, row.wantCode, got.stderr)
				}
				compareGolden(t, row.name+"."+format, got.stdout)
			})
		}
	}
	t.Run("limits-get-kinds/yaml", func(t *testing.T) {
		t.Parallel()
		got := command(t, "--endpoints", kinds.addr, "limits", "get", "-o", "yaml")
		compareGolden(t, "limits-get-kinds.yaml", got.stdout)
	})
	t.Run("limits-get/yaml", func(t *testing.T) {
		t.Parallel()
		got := command(t, "--endpoints", granted.addr, "limits", "get", "-o", "yaml")
		compareGolden(t, "limits-get.yaml", got.stdout)
	})
}

// TestVersionJSON keeps the only answer that is no message of the protocol. What
// it says differs from build to build.
func TestVersionJSON(t *testing.T) {
	t.Parallel()
	got := command(t, "version", "-o", "json")
	values := regexp.MustCompile(`: ("[^"]*"|true|false)`)
	compareGolden(t, "version.json", values.ReplaceAllString(got.stdout, `: "…"`))
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got); `go test -update` rewrites it:\n%s", path, diff)
	}
}
