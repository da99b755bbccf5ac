package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

type usageOf struct {
	quorleasev1.UnimplementedUsageBookServer
	*fakeNode
}

func (f usageOf) Query(
	ctx context.Context, r *quorleasev1.UsageBookQueryRequest,
) (*quorleasev1.UsageBookQueryResponse, error) {
	to := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	rows := f.usage
	if rows == nil {
		rows = counted(r.GetBy() == "limit")
	}
	return answer(ctx, f.fakeNode, r, &quorleasev1.UsageBookQueryResponse{
		From: timestamppb.New(to.Truncate(time.Hour).Add(-23 * time.Hour)), To: timestamppb.New(to),
		Nodes: []string{"n1", "n2"}, Missing: []string{"n3"},
		Rows: rows,
	})
}

// counted are rows, with estimates or without.
func counted(estimates bool) []*quorleasev1.UsageRow {
	rows := []*quorleasev1.UsageRow{
		{Name: `a,"b`, Limit: "llm", Dimension: "input_tokens", Grants: 12, Denials: 3, Granted: 14400, Denied: 3600},
		{Name: "", Limit: "llm", Dimension: "requests", Grants: 2, Granted: 2},
		{Limit: "llm", Dimension: "requests", Grants: 90, Granted: 90, Other: true},
	}
	if estimates {
		rows[0].Estimates = &quorleasev1.UsageEstimates{Tasks: 120, P90Bp: 300, P99Bp: 800, MostBp: 20_000}
	}
	return rows
}

// TestUsage: the same as text, JSON and CSV; who did not answer is no part of it.
func TestUsage(t *testing.T) {
	t.Parallel()
	node := startFake(t, fullFake())
	for _, row := range []struct{ name, by, format, stderr string }{
		{"usage.text", "client", "text", "without n3, which did not answer\n"},
		{"usage.json", "client", "json", ""},
		{"usage.csv", "client", "csv", "without n3, which did not answer\n"},
		{"usage-limit.text", "limit", "text", "without n3, which did not answer\n"},
		{"usage-limit.json", "limit", "json", ""},
		{"usage-limit.csv", "limit", "csv", "without n3, which did not answer\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := command(t, "--endpoints", node.addr, "usage", "--by", row.by, "--since", "90m", "-o", row.format)
			if got.code != 0 || got.stderr != row.stderr {
				t.Fatalf("exit code %d, stderr %q", got.code, got.stderr)
			}
			compareGolden(t, row.name, got.stdout)
		})
	}
	for args, want := range map[string]string{
		"usage":                          `--by "" is none of client, limit, team`,
		"usage --by colour":              `--by "colour" is none of client, limit, team`,
		"usage --by team --since 745h":   "--since 745h0m0s is outside 1h to 744h",
		"usage --by team --since 10m":    "--since 10m0s is outside 1h to 744h",
		"usage --by team --top 0":        "--top 0 is outside 1 to 1000",
		"clients -o csv":                 `--output "csv" is none of text, json`,
		"keys llm --top 1001":            "--top 1001 is outside 1 to 1000",
		"keys llm --prefix \xff":         `--prefix: "\xff" is not valid UTF-8`,
		"adjust llm reset --reason \xff": `--reason: "\xff" is not valid UTF-8`,
		"keys llm/team-a":                "llm/team-a",
		"serve --audit-sample 101%":      `--audit-sample "101%": not a part like 10% or 0.5%, 0% to 100%`,
	} {
		got := command(t, append([]string{"--endpoints", node.addr}, strings.Fields(args)...)...)
		if got.code != 2 || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%s: exit code %d, stderr %q, want %q", args, got.code, got.stderr, want)
		}
	}
}
