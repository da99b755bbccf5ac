package limitsfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// head and its tail make a file around one more line of a limit.
const head = "limits:\n  - name: a\n    rate: {requests: 10/min}\n"

// mistake is a file with something wrong and a part of what is said about it.
type mistake struct{ name, file, want string }

func (m mistake) check(t *testing.T) {
	t.Parallel()
	_, err := limitsfile.Parse([]byte(m.file))
	if err == nil {
		t.Fatalf("accepted:\n%s", m.file)
	}
	if !strings.Contains(err.Error(), m.want) {
		t.Errorf("got  %s\nwant %s", err, m.want)
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		if !strings.HasPrefix(line, "limits.yaml:") {
			t.Errorf("no place: %q", line)
		}
	}
}

func TestWrongFallbacksHaveTheirPlace(t *testing.T) {
	t.Parallel()
	const free = "limits: [{name: a, unlimited: true, "
	for _, test := range []mistake{
		{
			"unknown mode", head + "    on_quorum_loss: shut\n",
			`4:21: limits[0].on_quorum_loss: "shut": want one of open, share, closed`,
		},
		{"mode of another kind", head + "    on_quorum_loss: [open]\n", "limits[0].on_quorum_loss: a list: want open, share"},
		{"empty mode", head + "    on_quorum_loss: ''\n", `limits[0].on_quorum_loss: "": want one of`},
		{"share without fields", head + "    fallback: 25%\n", `4:15: limits[0].fallback: "25%": want fields: share`},
		{
			"unknown field", head + "    fallback: {shares: 1%}\n",
			"4:16: limits[0].fallback.shares: unknown field; known are share",
		},
		{"bare number", head + "    fallback: {share: 25}\n", `4:23: limits[0].fallback.share: "25": want a percentage`},
		{"above all", head + "    fallback: {share: 101%}\n", `limits[0].fallback.share: "101%" is out of range 0%..100%`},
		{
			"share of unlimited", free + "on_quorum_loss: share}]",
			"limits[0].on_quorum_loss: share: there is nothing to share",
		},
		{
			"reserve of an open limit", head + "    share_reserve: 10%\n",
			"4:5: limits[0].share_reserve: is for a rate with on_quorum_loss: share",
		},
		{
			"reserve of next to nothing",
			"limits: [{name: a, rate: {n: 1/s}, target: 0.02%, on_quorum_loss: share, share_reserve: 51%}]",
			"limits[0].share_reserve: 51% is out of range 0%..50%",
		},
		{"fallback of unlimited", free + "fallback: {share: 1%}}]", "1:48: limits[0].fallback.share: must be absent where"},
	} {
		t.Run(test.name, test.check)
	}
	// What does not come from a file is held to the same rules.
	limit := &quorleasev1.Limit{Name: "a", Unlimited: true, OnQuorumLoss: 4}
	if _, err := limitsfile.Resolve(limit); err == nil || err.Error() != "on_quorum_loss: 4 is no mode" {
		t.Errorf("mode 4: %v", err)
	}
	limit = &quorleasev1.Limit{Name: "a", Unlimited: true, FallbackShareBp: ptr[int64](-1)}
	_, err := limitsfile.Resolve(limit)
	if err == nil || !strings.Contains(err.Error(), "-0.01% is out of range 0%..100%") {
		t.Errorf("share -1: %v", err)
	}
}

// TestT52ShareOfNothing: a share of 0 is one, an absent one is none.
func TestT52ShareOfNothing(t *testing.T) {
	t.Parallel()
	t.Run("T52", func(t *testing.T) {
		t.Parallel()
		zero := resolved(t, head+"    on_quorum_loss: share\n    fallback: {share: 0%}\n")
		if zero.FallbackShare == nil || zero.GetFallbackShare() != 0 || limitsfile.Describe(zero).FallbackShareBp == nil {
			t.Errorf("0%%: %v", zero)
		}
		absent := resolved(t, head+"    on_quorum_loss: share\n")
		held := resolved(t, head+"    on_quorum_loss: share\n    share_reserve: 12.5%\n")
		if held.GetShareReserve() != 1250 || limitsfile.Describe(held).GetShareReserveBp() != 1250 {
			t.Errorf("held back: %v", held)
		}
		if absent.FallbackShare != nil || limitsfile.Describe(absent).FallbackShareBp != nil {
			t.Errorf("absent: %v", absent)
		}
	})
}

func TestWrongValuesHaveTheirPlace(t *testing.T) {
	t.Parallel()
	for _, test := range []mistake{
		{
			"unparsable rate", "limits:\n  - name: a\n    rate: {requests: 10/foo}\n",
			`3:22: limits[0].rate.requests: "10/foo": want tokens per interval in s, min, h or d, like 1000/min or 6/10s`,
		},
		{
			"rate without interval", "limits: [{name: a, rate: {r: 10}}]",
			`1:30: limits[0].rate.r: "10": want tokens per interval`,
		},
		{"negative rate", "limits: [{name: a, rate: {r: -1/s}}]", `limits[0].rate.r: "-1/s": want`},
		{"interval of zero", "limits: [{name: a, rate: {r: 1/0s}}]", `"1/0s": the interval must be from 1s to 366d`},
		{"interval too long", "limits: [{name: a, rate: {r: 1/400d}}]", `the interval must be from 1s to 366d`},
		{
			"amount too large", "limits: [{name: a, rate: {r: 9007199254740993/s}}]",
			`"9007199254740993" is out of range 0..9007199254740992`,
		},
		{"float rate", "limits: [{name: a, rate: {r: 1.5}}]", `limits[0].rate.r: "1.5": floats are not supported`},
		{
			"float with exponent", head + "    max_keys: 1e3\n",
			`4:15: limits[0].max_keys: "1e3": floats are not supported`,
		},
		{"not a number", head + "    max_keys: .nan\n", `limits[0].max_keys: ".nan": floats are not supported`},
		{"octal", head + "    max_keys: 0o17\n", `"0o17": want a whole number`},
		{"leading zero", head + "    max_keys: 017\n", `"017": a whole number has no leading zero`},
		{"unknown field", head + "    ratee: 1\n", `4:5: limits[0].ratee: unknown field; known are name, match, per`},
		{"field of a later program", head + "    color: red\n", `limits[0].color: unknown field`},
		{"unknown top field", "limit: []\n", `1:1: limit: unknown field; known are limits, retry_budgets`},
		{"duplicate field", head + "    rate: {requests: 1/s}\n", `4:5: limits[0].rate: set twice in one place`},
		{"duplicate dimension", "limits: [{name: a, rate: {r: 1/s, r: 2/s}}]", `limits[0].rate.r: set twice`},
		{
			"A22_duplicate_limit", head + "  - {name: a, rate: {r: 1/s}}\n",
			`4:6: limits[1].name: "a" is used twice, first by limits[0]`,
		},
		{"bad name", "limits: [{name: A, rate: {r: 1/s}}]", `1:11: limits[0].name: "A" is not a name: 1 to 63 of`},
		{"missing name", "limits: [{rate: {r: 1/s}}]", `1:10: limits[0].name: missing`},
		{"number as name", "limits: [{name: 7, rate: {r: 1/s}}]", `"7": want a text; put it in quotes`},
		{"bad dimension", "limits: [{name: a, rate: {R: 1/s}}]", `1:27: limits[0].rate.R: "R" is not the name of`},
		{
			"no rate", "limits: [{name: a}]",
			`limits[0].rate: missing: name a rate for each dimension, a concurrency or a quota, or set unlimited: true`,
		},
		{
			"A06_unlimited_and_a_rate", head + "    unlimited: true\n",
			`3:5: limits[0].rate: must be absent where unlimited is true`,
		},
		{"bad share", head + "    target: 75\n", `limits[0].target: "75": want a percentage`},
		{
			"share with three decimals", head + "    target: 0.125%\n",
			`"0.125%": want a percentage with at most two decimals`,
		},
		{"share above all", head + "    target: 101%\n", `"101%" is out of range 0%..100%`},
		{
			"target of nothing", head + "    target: 0%\n",
			`4:5: limits[0].target: 0% is out of range 0.01%..100%`,
		},
		{
			"shares above all", head + "    classes: {x: {share: 60%}, y: {share: 50%}}\n",
			`limits[0].classes.y.share: 50%: with those before it 110%, which is more than 100%`,
		},
		{
			"bursts above all",
			head + "    burst: {requests: 100}\n    classes: {x: {share: 1%, burst: 60%}, y: {share: 1%, burst: 50%}}\n",
			`classes.y.burst: dimension requests: 50% is 50: with those before it 110, which is more than the burst of 100`,
		},
		{
			"A05_no_room_for_a_class", head + "    burst: {requests: 1}\n    classes: {x: {share: 100%}, y: {}}\n",
			`limits[0].classes.y: dimension requests: has nothing to take`,
		},
		{
			"A05_burst_of_zero", head + "    burst: {requests: 0}\n",
			`4:13: limits[0].burst.requests: 0 is out of range 1..9007199254740992`,
		},
		{"burst of no time", head + "    burst: 0s\n", `limits[0].burst: 0s: must be positive`},
		{"negative burst", head + "    burst: -1s\n", `"-1s": must not be negative`},
		{
			"A10_burst_too_large", head + "    burst: {requests: 9007199254740993}\n",
			`is out of range 0..9007199254740992`,
		},
		{
			"burst of an unknown dimension", head + "    burst: {tokens: 5}\n",
			`4:13: limits[0].burst.tokens: rate has no such dimension`,
		},
		{"lease too long", head + "    lease: 25h\n", `4:5: limits[0].lease: 25h0m0s is out of range 1ms..24h`},
	} {
		t.Run(test.name, test.check)
	}
}

func TestWrongTextsHaveTheirPlace(t *testing.T) {
	t.Parallel()
	for _, test := range []mistake{
		{"empty value", head + "    burst:\n    exact: true\n", `the value before is empty`},
		{"field without a value", "limits: [{name: a, rate}]", `the field before has no value`},
		{"comma at the end", "limits: [{rate: {requests: 1/s,},},]", `limits[0].name: missing`},
		{"empty value at the end", head + "    burst:\n", `limits[0].burst: empty: want a duration`},
		{"list for a mapping", "limits: [[]]", `limits[0]: a list: want fields: name, match, per`},
		{"mapping for a list", "limits: {}", `limits: fields: want a list`},
		{
			"window", "retry_budgets: [{name: b, match: {client: x}, window: 10s}]",
			`1:47: retry_budgets[0].window: 10s is not a multiple of 3s`,
		},
		{
			"fraction of all", "retry_budgets: [{name: b, match: {client: x}, max_fraction: 100%}]",
			`retry_budgets[0].max_fraction: 100% is out of range 0%..99.99%`,
		},
		{"no client", "retry_budgets: [{name: b}]", `retry_budgets[0].match.client: missing`},
		{
			"star in the middle", "retry_budgets: [{name: b, match: {client: a*b}}]",
			`"a*b": a star may stand at the end only`,
		},
		{
			"two budgets for one client",
			"retry_budgets: [{name: b, match: {client: x}}, {name: c, match: {client: x}}]",
			`retry_budgets[1].match.client: "x" is used twice, first by retry_budgets[0]`,
		},
		{"no YAML", "limits: [", `1:9: sequence end token ']' not found`},
		{"tab", "limits:\n\t- name: a\n", `2:1: a tab in the indentation; use spaces`},
		{"not UTF-8", "limits: []\n# \xff\n", `2:1: the line is not valid UTF-8`},
		{"anchor", "limits: &x []\n", `1:9: anchors (&) are not supported`},
		{"alias", "limits: *x\n", `1:9: aliases (*) are not supported`},
		{"tag", "limits: !!seq []\n", `tags (!) are not supported`},
		{"merge", "<<: {limits: []}\n", `merge keys (<<) are not supported`},
		{"two documents", "limits: []\n---\nlimits: []\n", `2:1: a second document in one file is not supported`},
		{"after the end", "limits: []\n...\nlimits: []\n", `3:1: a second document`},
		{"too large", strings.Repeat("#", limitsfile.FileMax+1), `1:1: the file has more than 524288 bytes`},
		{
			"control character in a client", `retry_budgets: [{name: b, match: {client: "a\nb"}}]`,
			`"a\nb" has a control character`,
		},
	} {
		t.Run(test.name, test.check)
	}
}

// A person who mends a file wants to see everything at once, in order.
func TestAllMistakesAreReported(t *testing.T) {
	t.Parallel()
	file := "limits:\n  - name: A\n    rate: {r: 1/x}\n    modes: off\n  - {name: b, rate: {r: 1/s}, lease: 1y}\n"
	_, err := limitsfile.ParseNamed("prod.yaml", []byte(file))
	var all limitsfile.SourceErrors
	if !errors.As(err, &all) || len(all) != 3 {
		t.Fatalf("got %v", err)
	}
	for i, want := range []string{"prod.yaml:3:15: ", "prod.yaml:4:5: ", "prod.yaml:5:38: "} {
		if !strings.HasPrefix(all[i].Error(), want) {
			t.Errorf("%d: %s, want it at %s", i, all[i], want)
		}
	}
	_, err = limitsfile.Parse([]byte("limits:\n" + strings.Repeat("  - {name: A, rate: {r: 1/s}}\n", 100)))
	if !errors.As(err, &all) || len(all) != 20 {
		t.Errorf("got %d errors of a hundred, want 20", len(all))
	}
}
