package provider

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWaits(t *testing.T) {
	const s = time.Second
	cases := []struct {
		name    string
		pairs   []string
		wait    time.Duration
		from    string
		garbage int
	}{
		{"S1-05_seconds", []string{"Retry-After", "22"}, 22 * s, "retry-after", 0},
		{"half_seconds", []string{"Retry-After", "1.5"}, 1500 * time.Millisecond, "retry-after", 0},
		{"a_date", []string{"Retry-After", "Thu, 20 Aug 2026 12:00:30 GMT"}, 30 * s, "retry-after", 0},
		{"a_date_that_has_passed", []string{"Retry-After", "Thu, 20 Aug 2026 11:00:00 GMT"}, 0, "retry-after", 0},
		{"milliseconds_before_seconds", []string{"Retry-After", "9", "Retry-After-Ms", "250"}, s / 4, "retry-after-ms", 0},
		{
			"services_of_azure_between",
			[]string{"Retry-After", "9", "X-Ms-Retry-After-Ms", "500"},
			s / 2,
			"x-ms-retry-after-ms", 0,
		},
		{
			"all_three",
			[]string{"Retry-After", "9", "X-Ms-Retry-After-Ms", "500", "Retry-After-Ms", "1.5"},
			1500 * time.Microsecond, "retry-after-ms", 0,
		},
		{"garbage_gives_way", []string{"Retry-After", "9", "Retry-After-Ms", "soon"}, 9 * s, "retry-after", 1},
		{"at_once", []string{"Retry-After", "0"}, 0, "retry-after", 0},
		{"never_more_than_a_day", []string{"Retry-After", "1e300"}, WaitMax, "retry-after", 0},
		{"a_date_of_next_year", []string{"Retry-After", "Fri, 20 Aug 2027 12:00:00 GMT"}, WaitMax, "retry-after", 0},
		{"rounded_up", []string{"Retry-After-Ms", "0.0000001"}, 1, "retry-after-ms", 0},
		{"negative", []string{"Retry-After", "-1"}, 0, "", 1},
		{"no_number", []string{"Retry-After", "NaN", "Retry-After-Ms", "Inf"}, 0, "", 2},
		{"hexadecimal", []string{"Retry-After", "0x10"}, 0, "", 1},
		{"a_list", []string{"Retry-After", "22, 30"}, 0, "", 1},
		{"empty", []string{"Retry-After", " "}, 0, "", 1},
		{"no_date_in_milliseconds", []string{"Retry-After-Ms", "Thu, 20 Aug 2026 12:00:30 GMT"}, 0, "", 1},
		{"the_first_that_can_be_read", []string{"Retry-After", "x", "Retry-After", "3"}, 3 * s, "retry-after", 1},
		{"none", nil, 0, "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := ParseWait(header(c.pairs...), wall)
			want := Wait{Said: c.from != "", For: c.wait, From: c.from, Garbage: c.garbage}
			if got != want {
				t.Errorf("%q: got %+v, want %+v", c.pairs, got, want)
			}
		})
	}
}

func TestWaitsInMessages(t *testing.T) {
	for message, want := range map[string]time.Duration{
		"please try again in 18.642s. visit":   18642 * time.Millisecond,
		"please try again in 6ms. contact":     6 * time.Millisecond,
		"please try again in 7m12s.":           432 * time.Second,
		"please retry after 22 seconds.":       22 * time.Second,
		"please retry in 52.45s":               52450 * time.Millisecond,
		"try again in 2 minutes":               2 * time.Minute,
		"try again in 900 milliseconds":        900 * time.Millisecond,
		"try again in 3.":                      3 * time.Second,
		"try again in 999999999999999999999 s": WaitMax,
		"try again later":                      -1,
		"try again in 1.2.3s":                  -1,
		"":                                     -1,
	} {
		got, ok := waitIn(message)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", message, got, want)
		}
	}
}

func TestLimitsOfHeaders(t *testing.T) {
	limit := func(dimension string, limit, remaining int64, full time.Duration) Limit {
		return Limit{Dimension: dimension, Limit: limit, Remaining: remaining, Full: full, FullSaid: full >= 0}
	}
	said := func(l Limit, rounded int64, short bool) Limit {
		l.Rounded, l.Short = rounded, short
		l.Full = max(0, l.Full)
		return l
	}
	oaHeaders := func(what string, values ...string) []string {
		return []string{
			"x-ratelimit-limit-" + what, values[0], "x-ratelimit-remaining-" + what, values[1],
			"x-ratelimit-reset-" + what, values[2],
		}
	}
	cases := []struct {
		name    string
		table   *Table
		pairs   []string
		want    []Limit
		garbage int
	}{
		{
			"S3-01_openai", &openAI, append(oaHeaders("requests", "500", "499", "120ms"),
				oaHeaders("tokens", "200000", "199996", "6m0s")...),
			[]Limit{limit(Requests, 500, 499, 120*time.Millisecond), limit(Tokens, 200000, 199996, 6*time.Minute)},
			0,
		},
		{
			"S3-01_long_spans", &openAI, append(oaHeaders("requests", "1", "0", "23h18m29.144s"),
				oaHeaders("tokens", "1", "0", "4m12.172s")...),
			[]Limit{
				limit(Requests, 1, 0, 83909144*time.Millisecond), limit(Tokens, 1, 0, 252172*time.Millisecond),
			},
			0,
		},
		{
			"S3-01_anthropic", &anthropic,
			[]string{
				"anthropic-ratelimit-input-tokens-limit", "80000", "anthropic-ratelimit-input-tokens-remaining", "79000",
				"anthropic-ratelimit-input-tokens-reset", "2026-08-20T12:00:45Z",
				"anthropic-ratelimit-requests-remaining", "7", "anthropic-ratelimit-requests-reset", "2026-08-20T11:00:00Z",
			},
			[]Limit{
				limit(Requests, -1, 7, 0), said(limit(InputTokens, 80000, 79000, 45*time.Second), 1000, false),
			},
			0,
		},
		{
			"S3-01_azure_counts_no_minus_one", &azure, oaHeaders("tokens", "-1", "-1", "0"), nil, 0,
		},
		{
			"S3-01_azure_in_seconds", &azure, oaHeaders("tokens", "100000", "99000", "59"),
			[]Limit{limit(Tokens, 100000, 99000, 59*time.Second)},
			0,
		},
		{
			"S3-01_azure_of_ten_seconds", &azure, oaHeaders("requests", "20", "19", "1"),
			[]Limit{said(limit(Requests, 20, 19, time.Second), 0, true)},
			0,
		},
		{
			"S3-01_azure_of_the_minute", &azure, oaHeaders("requests", "120", "119", "1"),
			[]Limit{limit(Requests, 120, 119, time.Second)},
			0,
		},
		{
			"garbage", &openAI, append(oaHeaders("requests", "many", "-5", "1700000000"),
				oaHeaders("tokens", "1e3", "7", "soon")...),
			[]Limit{said(limit(Tokens, -1, 7, -1), 0, false)},
			5,
		},
		{
			"more_than_anybody_has", &openAI, oaHeaders("tokens", "9223372036854775807", "1", "0s"),
			[]Limit{limit(Tokens, countMax, 1, 0)},
			0,
		},
		{"none", &anthropic, nil, nil, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := c.table.ParseLimits(header(c.pairs...), wall, map[string]int64{Requests: 120})
			if diff := cmp.Diff(Limits{c.want, c.garbage}, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.pairs, diff)
			}
			for _, seen := range got.Seen {
				if left, told := got.Remaining()[seen.Dimension]; told == seen.Short || told && left != seen.Remaining {
					t.Errorf("%+v: told %t, %d", seen, told, left)
				}
			}
		})
	}
}

func TestWhatMayBeAboutSecondsIsWithoutConfiguration(t *testing.T) {
	got := azure.ParseLimits(header("X-Ratelimit-Limit-Requests", "120", "X-Ratelimit-Remaining-Requests", "1"), wall, nil)
	if len(got.Seen) != 1 || !got.Seen[0].Short || got.Remaining() != nil {
		t.Errorf("got %+v, want one limit that says nothing about the minute", got)
	}
}
