package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
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
		rows = counted(r.GetBy())
	}
	return answer(ctx, f.fakeNode, r, &quorleasev1.UsageBookQueryResponse{
		From: timestamppb.New(to.Truncate(time.Hour).Add(-23 * time.Hour)), To: timestamppb.New(to),
		Nodes: []string{"n1", "n2"}, Missing: []string{"n3"},
		Rows: rows,
	})
}

// counted are rows, with what was used and with estimates or without.
func counted(by string) []*quorleasev1.UsageRow {
	rows := []*quorleasev1.UsageRow{
		{Name: `a,"b`, Limit: "llm", Dimension: "input_tokens", Grants: 12, Denials: 3, Granted: 14400, Denied: 3600},
		{Name: "", Limit: "llm", Dimension: "requests", Grants: 2, Granted: 2},
		{Limit: "llm", Dimension: "requests", Grants: 90, Granted: 90, Other: true},
	}
	if by == "limit" || by == "key" {
		rows[0].Returned, rows[0].Extra = 2500, 100
	}
	if by == "limit" {
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
		{"usage-key.text", "key", "text", "without n3, which did not answer\n"},
		{"usage-key.json", "key", "json", ""},
		{"usage-key.csv", "key", "csv", "without n3, which did not answer\n"},
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
		"usage":                          `--by "" is none of client, key, limit, team`,
		"usage --by colour":              `--by "colour" is none of client, key, limit, team`,
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

// TestLedger: a period is asked for as it was said, and what of it is not kept is said.
func TestLedger(t *testing.T) {
	t.Parallel()
	t.Run("S1-50_a_month_of_a_team", func(t *testing.T) {
		t.Parallel()
		node := startFake(t, fullFake())
		run := func(args string) outcome {
			return command(t, append([]string{"--endpoints", node.addr}, strings.Fields(args)...)...)
		}
		got := run("usage --by key --limit team --from 2026-03-01 --to 2026-03-04T05:00:00Z -o csv")
		want := "without what was before 2026-03-03T06:00:00Z, which is not kept\nwithout n3, which did not answer\n"
		if got.code != 0 || got.stderr != want {
			t.Fatalf("exit code %d, stderr %q, want %q", got.code, got.stderr, want)
		}
		compareGolden(t, "usage-key.csv", got.stdout)
		asked := &quorleasev1.UsageBookQueryRequest{
			By: "key", Top: 1000, Limit: "team", From: "2026-03-01", To: "2026-03-04T05:00:00Z",
		}
		if seen := node.asked(); len(seen) != 1 || !proto.Equal(seen[0], asked) {
			t.Errorf("asked %v, want %v", seen, asked)
		}
		node.mu.Lock()
		node.fail = func(ctx context.Context, _ proto.Message) error {
			if deadline, _ := ctx.Deadline(); time.Until(deadline) < 744*20*time.Millisecond {
				t.Errorf("there are %v to read a month", time.Until(deadline))
			}
			return refusal(t, codes.InvalidArgument, "BAD_FIELD", `to: "2026-03-04": usage is kept from 2026-04-01T00:00:00Z on`)
		}
		node.mu.Unlock()
		want = `to: "2026-03-04": usage is kept from 2026-04-01T00:00:00Z on`
		got = run("usage --by key --from 2026-03-01 --to 2026-03-04")
		if got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("exit code %d, stderr %q, want %q", got.code, got.stderr, want)
		}
		for args, want := range map[string]string{
			"--to 2026-03-01":                   "--to 2026-03-01: only with --from",
			"--from 2026-03-01 --since 24h":     "--from 2026-03-01: not with --since",
			"--from march":                      `--from "march": want a day like 2026-11-01, or an hour like`,
			"--from 2026-03-01T00:30:00Z":       `--from "2026-03-01T00:30:00Z": want a day`,
			"--from 2026-03-01 --to april":      `--to "april": want a day`,
			"--from 2026-03-01 --to 2026-03-01": "--to 2026-03-01: 0 hours after --from, want 1 to 744",
			"--from 2026-03-01 --to 2026-04-02": "--to 2026-04-02: 768 hours after --from, want 1 to 744",
			"--from 2026-03-01T13:00:00+00:30":  `--from "2026-03-01T13:00:00+00:30": want a day`,
			"--from 2026-03-02 --to 2026-03-01": "--to 2026-03-01: -24 hours after --from, want 1 to 744",
			"--from 2026-03-01 --to 2026-13-01": `--to "2026-13-01": want a day`,
		} {
			if got := run("usage --by key " + args); got.code != 2 || !strings.Contains(got.stderr, want) {
				t.Errorf("%s: exit code %d, stderr %q, want %q", args, got.code, got.stderr, want)
			}
		}
	})
}
