package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// nightlyYAML is the limit of the nightly backfill, and callers as they were.
const nightlyYAML = `limits:
  - name: provider
    match: {deployment: main}
    rate: {requests: 1000/min, input_tokens: 400_000/min, output_tokens: 80_000/min}
    target: 75%
    burst: 5s
    classes: {live: {share: 60%, burst: 50%}, batch: {share: 0%}}
    source: {url: https://example.com/limits, verified_at: 2026-10-22}
  - name: provider-batch
    match: {deployment: batch-api}
    rate: {requests: 100/min}
clients:
  - match: {client: "nightly-*"}
    instances: 200
    delay: fixed
    attempts: {sdk: 3, job: 5}
    fallback_after: 1
    honours_retry_after: false
    dedupes: false
    measures: [provider_errors]
`

var nightlyPlan = []string{
	"plan", "-f", "-", "--cost", "input_tokens=2500,output_tokens=300", "--live", "72/min", "--tasks", "6000",
	"--clients", "200", "--arrivals", "25",
}

func TestPlanAndDoctorGolden(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		args     []string
		wantCode int
	}{
		{name: "plan", args: nightlyPlan},
		{name: "doctor", args: []string{"doctor", "-f", "-", "--now", "2027-02-01"}, wantCode: 1},
	} {
		for _, format := range []string{"text", "json"} {
			t.Run(row.name+"/"+format, func(t *testing.T) {
				t.Parallel()
				got := commandWith(t, t.Context(), nightlyYAML, append([]string{"-o", format}, row.args...)...)
				if got.code != row.wantCode || got.stderr != "" {
					t.Fatalf("%v: exit code %d, want %d; stderr %q", row.args, got.code, row.wantCode, got.stderr)
				}
				compareGolden(t, row.name+"."+format, got.stdout)
			})
		}
	}
}

// The planner prints what the report of the incident has.
func TestPlanPrints(t *testing.T) {
	t.Parallel()
	has := func(t *testing.T, args []string, lines ...string) {
		t.Helper()
		got := commandWith(t, t.Context(), nightlyYAML, args...)
		if got.code != 0 {
			t.Fatalf("exit code %d: %s", got.code, got.stderr)
		}
		text := "\n" + strings.Join(strings.Fields(strings.ReplaceAll(got.stdout, "\n", " \n ")), " ") + " "
		for _, line := range lines {
			if !strings.Contains(text, " "+line+" ") {
				t.Errorf("no %q in\n%s", line, got.stdout)
			}
		}
	}
	with := func(more ...string) []string { return append(append([]string{}, nightlyPlan...), more...) }
	t.Run("S3-06", func(t *testing.T) {
		has(t, nightlyPlan, "binding input_tokens, 160/min", "live 72/min", "headroom 88/min",
			"75% file,suggested 120/min 48/min 125 min", "100% no-margin 160/min 88/min 68.2 min", "266.7/min", "1000/min")
	})
	t.Run("S3-14", func(t *testing.T) { has(t, nightlyPlan, "jitter 136 s for 200 clients,") })
	t.Run("S3-26", func(t *testing.T) {
		has(t, nightlyPlan, "2 s 100/s 6000/min no", "8 s 25/s 1500/min no", "60 s 3.33/s 200/min no",
			"136 s 1.47/s 88/min yes")
	})
	demo := with("--capacities", "10,15,20,25", "--rates", "2/s")
	t.Run("S3-19", func(t *testing.T) { has(t, demo, "10 120/min - 10 15 7.5 s 13,11,9,7,5,3,1,0") })
	t.Run("S3-20", func(t *testing.T) { has(t, demo, "25 120/min - 25 0 0 s -") })
	t.Run("S3-21", func(t *testing.T) {
		has(t, demo, "15 120/min - 15 10 5 s 8,6,4,2,0", "20 120/min - 20 5 2.5 s 3,1,0")
	})
	t.Run("S3-36_as_the_nodes_measured_it", func(t *testing.T) {
		node := fullFake()
		node.usage = estimated()
		measured := append([]string{"--endpoints", startFake(t, node).addr}, with("--measured")...)
		has(t, measured, "92% suggested 147.2/min 75.2/min 79.8 min", "margin 8%: of 100 tasks of input_tokens in a week, "+
			"50 of 100 used at most 0% more than they were charged, 90 8%, 99 8%, all 80%")
	})
	t.Run("S3-36", func(t *testing.T) {
		has(t, nightlyPlan, "margin 25%: nothing has measured the error of the estimates;")
		has(t, with("--error", "8%"), "margin 8%: the measured error of the estimates, 99th percentile",
			"92% suggested 147.2/min 75.2/min 79.8 min")
		settled := filepath.Join(t.TempDir(), "tasks.txt")
		tasks := "# charged used\n5000 9000\n" + strings.Repeat("2500,2700\n", 10) + strings.Repeat("2500 2400\n", 89)
		if err := os.WriteFile(settled, []byte(tasks), 0o600); err != nil {
			t.Fatal(err)
		}
		has(t, with("--settled", settled), "92% suggested 147.2/min 75.2/min 79.8 min",
			"margin 8%: of 100 tasks, 50 of 100 used at most 0% more than they were charged, 90 8%, 99 8%, all 80%")
	})
}

// estimated is what nodes have measured of the limit of the nightly backfill: of one
// dimension less than of another, of a third too little, and of another limit more.
func estimated() []*quorleasev1.UsageRow {
	row := func(limit, dimension string, tasks, p99, most int64) *quorleasev1.UsageRow {
		return &quorleasev1.UsageRow{Name: limit, Limit: limit, Dimension: dimension, Estimates: &quorleasev1.UsageEstimates{
			Tasks: tasks, P90Bp: p99, P99Bp: p99, MostBp: most,
		}}
	}
	return []*quorleasev1.UsageRow{
		{Name: "provider", Limit: "provider", Dimension: "requests"},
		row("provider", "requests", 5000, 0, 0),
		row("provider", "input_tokens", 100, 800, 8000), row("provider", "output_tokens", 99, 3000, 3000),
		row("provider", "images", 500, 3000, 3000), row("provider-batch", "requests", 500, 3000, 3000),
	}
}

// TestPlanMeasured: what nodes can't say is an error that names the limit and the figure,
// and who of them did not answer is named beside the plan.
func TestPlanMeasured(t *testing.T) {
	t.Parallel()
	ask := func(rows []*quorleasev1.UsageRow, args ...string) outcome {
		node := fullFake()
		node.usage = rows
		args = append([]string{"--endpoints", startFake(t, node).addr}, args...)
		return commandWith(t, t.Context(), nightlyYAML, args...)
	}
	few := estimated()[3:]
	for want, more := range map[string][]string{
		`--measured: limit "provider": at most 99 tasks of a dimension were settled in a week, at least 100`: {"--measured"},

		"--error and --measured both say how far estimates are off": {"--measured", "--error", "8%"},
	} {
		args := append(slices.Clone(nightlyPlan), more...)
		if got := ask(few, args...); got.code == 0 || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%v: exit code %d, stderr %q, want %q", args, got.code, got.stderr, want)
		}
	}
	got := ask(few, "plan", "-f", "-", "--limit", "provider-batch", "--cost", "requests=1", "--measured", "-o", "json")
	if got.code != 0 || got.stderr != "without n3, which did not answer\n" ||
		!strings.Contains(got.stdout, `"suggested_bp": "3000"`) {
		t.Errorf("exit code %d, %q, %s", got.code, got.stderr, got.stdout)
	}
	off := []*quorleasev1.UsageRow{{Name: "provider-batch", Dimension: "requests", Estimates: &quorleasev1.UsageEstimates{
		Tasks: 100, P99Bp: 10_000,
	}}}
	got = ask(off, "plan", "-f", "-", "--limit", "provider-batch", "--cost", "requests=1", "--measured")
	if want := "limit \"provider-batch\": one in a hundred tasks used 100% more than it was charged"; got.code == 0 ||
		!strings.Contains(got.stderr, want) {
		t.Errorf("exit code %d, %q, want %q", got.code, got.stderr, want)
	}
}
