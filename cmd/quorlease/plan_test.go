package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
