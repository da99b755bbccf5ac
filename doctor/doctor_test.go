package doctor_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorlease/quorlease/api/limitsfile"
	"github.com/quorlease/quorlease/doctor"
)

// today is when the tests examine; the numbers of sound were looked up before.
var today = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

// sound is a limit about which there is nothing to say.
const sound = `limits:
  - name: provider
    rate: {requests: 1000/min}
    target: 75%
    source: {url: https://example.com/limits, verified_at: 2026-10-22}
`

func examined(t *testing.T, file string, o doctor.Options) []doctor.Finding {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = today
	}
	parsed, err := limitsfile.ParseFile("limits.yaml", []byte(file))
	var mistakes limitsfile.SourceErrors
	switch {
	case errors.As(err, &mistakes):
		return doctor.Refused(mistakes)
	case err != nil:
		t.Fatal(err)
	}
	found, err := doctor.Examine(parsed, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.What == "" || f.Do == "" || f.Line < 1 || f.Column < 1 || strings.Contains(f.What+f.Do, "\n") {
			t.Errorf("%+v: what, where or what to do is missing", f)
		}
	}
	return found
}

// codes are the findings as "line code".
func codes(found []doctor.Finding) []string {
	list := []string{}
	for _, f := range found {
		list = append(list, fmt.Sprintf("%d %s", f.Line, f.Code))
	}
	return list
}

// row is a file and what is to be found in it, as "line code".
type row struct {
	name, file string
	options    doctor.Options
	want       []string
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			if r.want == nil {
				r.want = []string{}
			}
			if diff := cmp.Diff(r.want, codes(examined(t, r.file, r.options))); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%s", diff, r.file)
			}
		})
	}
}

// caller is sound with one kind of caller, whose field stands in line 8.
func caller(field string) string {
	return sound + "clients:\n  - match: {client: \"nightly-*\"}\n    " + field + "\n"
}

func TestDelays(t *testing.T) {
	t.Parallel()
	t.Run("S3-22", func(t *testing.T) {
		t.Parallel()
		check(t, []row{
			{name: "fixed", file: caller("instances: 200\n    delay: fixed"), want: []string{"9 fixed-delay"}},
			{name: "fixed, however many", file: caller("delay: fixed"), want: []string{"8 fixed-delay"}},
			{name: "exponential", file: caller("delay: exponential"), want: []string{"8 no-jitter"}},
			{name: "no part is random", file: caller("delay: exponential\n    jitter: 0%"), want: []string{"8 no-jitter"}},
			{name: "at once", file: caller("delay: none"), want: []string{"8 no-delay"}},
			{name: "fixed and random", file: caller("delay: fixed\n    jitter: 50%")},
			{name: "exponential and random", file: caller("delay: exponential\n    jitter: 0.01%")},
			{name: "alone", file: caller("instances: 1\n    delay: exponential")},
			{name: "alone, at once", file: caller("instances: 1\n    delay: none"), want: []string{"9 no-delay"}},
			{name: "unknown", file: caller("instances: 200")},
		})
	})
}

func TestMistakeList(t *testing.T) {
	t.Parallel()
	t.Run("S2-34", func(t *testing.T) {
		t.Parallel()
		check(t, []row{
			{name: "same delay", file: caller("delay: fixed"), want: []string{"8 fixed-delay"}},
			{name: "fallback at once", file: caller("fallback_after: 1"), want: []string{"8 fallback-at-once"}},
			{name: "fallback later", file: caller("fallback_after: 2")},
			{name: "twice", file: caller("dedupes: false"), want: []string{"8 no-dedupe"}},
			{name: "once", file: caller("dedupes: true")},
			{
				name: "errors alone", file: caller("measures: [provider_errors]"),
				want: []string{"8 only-provider-errors", "8 queue-not-watched"},
			},
			{name: "no queue", file: caller("measures: [provider_errors, spend]"), want: []string{"8 queue-not-watched"}},
			{name: "nothing", file: caller("measures: []"), want: []string{"8 queue-not-watched"}},
			{name: "the queue", file: caller("measures: [oldest_wait]")},
			{name: "not told", file: caller("honours_retry_after: false"), want: []string{"8 hints-ignored"}},
			{name: "told", file: caller("honours_retry_after: true")},
			{name: "stacked", file: caller("attempts: {sdk: 3, gateway: 2, job: 5}"), want: []string{"8 stacked-retries"}},
			{name: "one owner", file: caller("attempts: {sdk: 1, gateway: 4, job: 1}")},
		})
	})
	t.Run("product", func(t *testing.T) {
		t.Parallel()
		found := examined(t, caller("attempts: {sdk: 3, gateway: 2, queue: 1, job: 5}"), doctor.Options{})
		const want = `sdk, gateway and job of "nightly-*" try again: 3 × 2 × 5 = 30 attempts for one piece of work`
		if len(found) != 1 || found[0].What != want {
			t.Errorf("found %+v, want %s", found, want)
		}
	})
}

func measured(bp int64) doctor.Options { return doctor.Options{ErrorP99: &bp} }

func TestHeadroom(t *testing.T) {
	t.Parallel()
	with := func(target string) string { return strings.Replace(sound, "75%", target, 1) }
	t.Run("S3-36", func(t *testing.T) {
		t.Parallel()
		check(t, []row{
			{name: "a quarter", file: sound},
			{name: "less", file: with("75.01%"), want: []string{"4 no-headroom"}},
			{name: "measured", file: with("92%"), options: measured(800)},
			{name: "less than measured", file: with("92.01%"), options: measured(800), want: []string{"4 no-headroom"}},
			{name: "a large error", file: sound, options: measured(2501), want: []string{"4 no-headroom"}},
			{
				name: "not said", file: strings.Replace(sound, "    target: 75%\n", "", 1),
				want: []string{"2 no-headroom"},
			},
			{
				name: "a rule of the house",
				file: `limits: [{name: a, per: [tenant], match: {tenant: "*"}, rate: {requests: 1/s}}]`,
			},
			{name: "slots", file: `limits: [{name: a, concurrency: 4}]`},
			{name: "unlimited", file: `limits: [{name: a, unlimited: true}]`},
		})
	})
}

func TestSources(t *testing.T) {
	t.Parallel()
	on := func(day string) string { return strings.Replace(sound, "2026-10-22", day, 1) }
	t.Run("S3-48", func(t *testing.T) {
		t.Parallel()
		check(t, []row{
			{name: "90 days", file: on("2026-09-01")},
			{name: "91 days", file: on("2026-08-31"), want: []string{"5 source-stale"}},
			{name: "today", file: on("2026-11-30")},
			{name: "tomorrow, which it is somewhere", file: on("2026-12-01")},
			{name: "ahead", file: on("2026-12-02"), want: []string{"5 source-ahead"}},
			{
				name: "no day", file: strings.Replace(sound, ", verified_at: 2026-10-22", "", 1),
				want: []string{"5 source-missing"},
			},
			{
				name: "no source", file: "limits:\n  - name: a\n    rate: {requests: 1/s}\n    target: 50%\n",
				want: []string{"2 source-missing"},
			},
			{
				name: "of a quota, too",
				file: "limits: [{name: a, quota: {per: day, amounts: {x: 1}}, source: {verified_at: 2026-01-01}}]",
				want: []string{"1 source-stale"},
			},
		})
	})
}

func TestShares(t *testing.T) {
	t.Parallel()
	with := func(classes string) string { return sound + "    classes: {" + classes + "}\n" }
	check(t, []row{
		{name: "all", file: with("a: {share: 60%}, b: {share: 40%}")},
		{name: "what is left is for one", file: with("a: {share: 60%}, b: {share: 0%}")},
		{
			name: "thirds", file: with("a: {share: 33.33%}, b: {share: 33.33%}, c: {share: 33.33%}"),
			want: []string{"6 shares-left"},
		},
		{name: "too much", file: with("a: {share: 60%}, b: {share: 40.01%}"), want: []string{"6 shares-over"}},
		{name: "one is too much", file: with("a: {share: 100.01%}"), want: []string{"6 invalid"}},
		{name: "no share", file: with("a: {share: most}"), want: []string{"6 invalid"}},
		{name: "of no class", file: with("A: {share: 10%}"), want: []string{"6 invalid"}},
		{name: "refused", file: sound + "    brust: 5s\n", want: []string{"6 invalid"}},
	})
	alone := sound + "    on_quorum_loss: share\n    fallback: {share: 25%}\nclients:\n"
	check(t, []row{
		{name: "four alone", file: alone + "  - {match: {client: a}, instances: 4}\n"},
		{
			name: "five alone",
			file: alone + "  - {match: {client: a}, instances: 4}\n  - {match: {client: b}, instances: 1}\n",
			want: []string{"7 fallback-shares"},
		},
	})
}

// TestDaysAreCounted: also those of a day that nobody meant.
func TestDaysAreCounted(t *testing.T) {
	t.Parallel()
	for day, want := range map[string]string{"0001-01-01": ", 739949 days ago,", "9999-12-31": " is 2912109 days ahead"} {
		found := examined(t, strings.Replace(sound, "2026-10-22", day, 1), doctor.Options{})
		if len(found) != 1 || !strings.Contains(found[0].What, want) {
			t.Errorf("%s: %+v, want%s", day, found, want)
		}
	}
}

// The example that ships is sound.
func TestExample(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../examples/limits/provider.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := codes(examined(t, string(data), doctor.Options{}))
	if diff := cmp.Diff([]string{}, found); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
