package limitsfile_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// kinds has what the other sample has not.
const kinds = `limits:
  - name: provider
    match: {deployment: azure-gpt4o, region: "eu-*"}
    per: [tenant, model]
    mode: shadow
    rate: {requests: 1000/min, input_tokens: 400000/min}
    target: 75%
    burst: 10s
    ramp: 30s
    adaptive: {decrease: 40%, floor: 5%}
    escrow: 1s
    queue: {max: 100, max_tokens: 2_000_000, max_wait: 90s, weights: {big: 4, "a b": 2}}
    max_keys_per_client: 7
    overrides: [{key: big-team, rate: {requests: 6000/min}}, {prefix: trial-, burst: {input_tokens: 5}}]
    source: {url: https://example.com/limits, verified_at: 2026-10-22}
  - name: tenant-inflight
    per: [tenant]
    match: {tenant: "*"}
    concurrency: 4
    overrides: [{key: big, concurrency: 9}]
  - name: team-month
    per: [team]
    match: {team: "*"}
    mode: off
    quota: {per: month, timezone: Europe/Berlin, amounts: {input_tokens: 50_000_000, a: 1}, warn: [80%, 95.5%]}
    overrides: [{prefix: x-, amounts: {a: 2}}]
  - {name: hourly, quota: {per: hour, amounts: {requests: 5}}, queue: {max: 0}}
retry_budgets:
  - name: default
    match: {client: "*"}
    min_retries: 10/s
    scope: retries
    warn: {fraction: 12.5%, for: 90s}
    mode: warn
`

func resolvedAll(t *testing.T, file string) *logv1.ApplyLimits {
	t.Helper()
	req, err := limitsfile.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	all, err := limitsfile.ResolveAll(req)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestKindsAreComplete(t *testing.T) {
	t.Parallel()
	minute, second := int64(time.Minute), int64(time.Second)
	requests := func(amount, burst int64) *logv1.Dimension {
		return &logv1.Dimension{
			Name: "requests", Amount: amount, Interval: minute, Burst: burst,
			MaxDebt: amount * 3 / 4, MaxOpen: amount * 3 / 4,
		}
	}
	input := func(burst int64) *logv1.Dimension {
		return &logv1.Dimension{
			Name: "input_tokens", Amount: 400_000, Interval: minute, Burst: burst, MaxDebt: 300_000, MaxOpen: 300_000,
		}
	}
	window := func(name string, n int64) *logv1.Dimension {
		return &logv1.Dimension{Name: name, Interval: second, Burst: n, MaxDebt: n, MaxOpen: n}
	}
	queue := &logv1.Queue{Max: 10_000, MaxWait: minute}
	open := logv1.OnQuorumLoss_ON_QUORUM_LOSS_OPEN
	want := []*logv1.Limit{{
		Name: "provider", Keyed: true, Per: []string{"tenant", "model"}, Mode: logv1.Mode_MODE_SHADOW,
		Match: []*logv1.Match{
			{Attribute: "deployment", Value: "azure-gpt4o"}, {Attribute: "region", Value: "eu-", Prefix: true},
		},
		// 75 % of a thousand a minute is 125 in 10 s; of six thousand, six times that.
		Dimensions: []*logv1.Dimension{requests(1000, 125), input(50_000)},
		Target:     7500, Ramp: 30 * second, Escrow: second, Lease: 5 * second, MaxKeys: 100_000, OnQuorumLoss: open,
		Adaptive: &logv1.Adaptive{Decrease: 4000, Step: 500, Interval: 10 * second, Floor: 500},
		Queue: &logv1.Queue{
			Max: 100, MaxTokens: 2_000_000, MaxWait: 90 * second,
			Weights: []*logv1.Weight{{Client: "a b", Weight: 2}, {Client: "big", Weight: 4}},
		},
		MaxKeysPerClient: 7,
		Overrides: []*logv1.Override{
			{Value: "big-team", Dimensions: []*logv1.Dimension{requests(6000, 750), input(50_000)}},
			{Value: "trial-", Prefix: true, Dimensions: []*logv1.Dimension{requests(1000, 125), input(5)}},
		},
		Source: &logv1.Source{Url: "https://example.com/limits", VerifiedAt: "2026-10-22"},
	}, {
		Name: "tenant-inflight", Keyed: true, Per: []string{"tenant"}, Kind: logv1.Kind_KIND_CONCURRENCY,
		Match:      []*logv1.Match{{Attribute: "tenant", Prefix: true}},
		Dimensions: []*logv1.Dimension{{Name: "slots", Interval: second, Burst: 4}},
		Target:     10_000, Ramp: minute, Lease: minute, MaxKeys: 100_000, Queue: queue, OnQuorumLoss: open,
		Overrides: []*logv1.Override{
			{Value: "big", Dimensions: []*logv1.Dimension{{Name: "slots", Interval: second, Burst: 9}}},
		},
	}, {
		Name: "team-month", Keyed: true, Per: []string{"team"}, Kind: logv1.Kind_KIND_QUOTA, Mode: logv1.Mode_MODE_OFF,
		Match:      []*logv1.Match{{Attribute: "team", Prefix: true}},
		Calendar:   &logv1.Calendar{Period: logv1.Calendar_PERIOD_MONTH, Timezone: "Europe/Berlin"},
		Dimensions: []*logv1.Dimension{window("a", 1), window("input_tokens", 50_000_000)},
		Target:     10_000, Ramp: minute, Lease: 5 * second, MaxKeys: 100_000, Queue: queue, OnQuorumLoss: open,
		Warn: []int64{8000, 9550},
		Overrides: []*logv1.Override{{
			Value: "x-", Prefix: true,
			Dimensions: []*logv1.Dimension{window("a", 2), window("input_tokens", 50_000_000)},
		}},
	}, {
		Name: "hourly", Kind: logv1.Kind_KIND_QUOTA,
		Calendar:   &logv1.Calendar{Period: logv1.Calendar_PERIOD_HOUR, Timezone: "UTC"},
		Dimensions: []*logv1.Dimension{window("requests", 5)},
		Target:     10_000, Ramp: minute, Lease: 5 * second, MaxKeys: 100_000, OnQuorumLoss: open,
		Queue: &logv1.Queue{MaxWait: minute},
	}}
	got := resolvedAll(t, kinds)
	if diff := cmp.Diff(want, got.GetLimits(), protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	wantBudget := &logv1.RetryBudget{
		Name: "default", Client: "*", MaxRetries: 3, MaxFraction: 2000, Window: 5 * minute, MinRequests: 50,
		RetryAfter: minute, MinRetries: 10, MinRetriesInterval: second, Scope: logv1.Scope_SCOPE_RETRIES,
		Mode: logv1.Mode_MODE_WARN, WarnFraction: 1250, WarnFor: 90 * second,
	}
	if diff := cmp.Diff(wantBudget, got.GetRetryBudgets()[0], protocmp.Transform()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWrongKindsHaveTheirPlace(t *testing.T) {
	t.Parallel()
	const slots, month = "limits: [{name: a, concurrency: 4, ", "limits: [{name: a, quota: {per: month, amounts: {t: 1}}, "
	keyed := head + "    per: [tenant]\n    match: {tenant: \"*\"}\n"
	for _, test := range []mistake{
		{"A06_negative_slots", "limits: [{name: a, concurrency: -1}]", `limits[0].concurrency: "-1": want a whole number`},
		{"slots and a rate", slots + "rate: {r: 1/s}}]", `limits[0].rate: must be absent where concurrency counts slots`},
		{"slots with classes", slots + "classes: {x: {}}}]", `1:36: limits[0].classes: must be absent where concurrency`},
		{"slots with a target", slots + "target: 50%}]", `limits[0].target: must be absent where concurrency`},
		{"slots and a quota", slots + "quota: {per: day, amounts: {t: 1}}}]", `limits[0].quota: must be absent`},
		{"quota with classes", month + "classes: {x: {}}}]", `limits[0].classes: must be absent where quota counts`},
		{
			"quota of nothing", "limits: [{name: a, quota: {per: month}}]",
			`1:20: limits[0].quota.amounts: missing: a number of tokens`,
		},
		{
			"quota without a period", "limits: [{name: a, quota: {amounts: {t: 1}}}]",
			`limits[0].quota.per: missing: hour, day or month`,
		},
		{
			"unknown period", "limits: [{name: a, quota: {per: week, amounts: {t: 1}}}]",
			`limits[0].quota.per: "week": want one of hour, day, month`,
		},
		{
			"unknown time zone", "limits: [{name: a, quota: {per: day, timezone: Mars/North, amounts: {t: 1}}}]",
			`1:38: limits[0].quota.timezone: "Mars/North": unknown time zone`,
		},
		{
			"time zone of this machine", "limits: [{name: a, quota: {per: day, timezone: Local, amounts: {t: 1}}}]",
			`limits[0].quota.timezone: "Local": unknown time zone`,
		},
		{
			"warnings out of order", "limits: [{name: a, quota: {per: day, amounts: {t: 1}, warn: [90%, 80%]}}]",
			`limits[0].quota.warn[1]: 80%: must be more than the one before it`,
		},
		{"unknown mode", head + "    mode: soft\n", `4:11: limits[0].mode: "soft": want one of off, shadow, warn, enforce`},
		{"star in the middle", head + "    match: {a: x*y}\n", `limits[0].match.a: "x*y": a star may stand at the end only`},
		{"match nothing", head + "    match: {a: ''}\n", `limits[0].match.a: missing: a value`},
		{"bad attribute", head + "    match: {A: x}\n", `limits[0].match.A: "A" is not the name of an attribute`},
		{"key and match", head + "    match: {a: x}\n    per: [key]\n", `5:11: limits[0].per[0]: key is that of an explicit`},
		{"key among attributes", head + "    per: [a, key]\n", `limits[0].per[1]: key stands alone`},
		{"attribute twice", head + "    per: [a, a]\n", `limits[0].per[1]: "a" is there twice`},
		{
			"override of one bucket", head + "    overrides: [{key: x, rate: {requests: 1/s}}]\n",
			`4:5: limits[0].overrides: must be absent where there is one bucket for all`,
		},
		{
			"override of none", keyed + "    overrides: [{rate: {requests: 1/s}}]\n",
			`limits[0].overrides[0]: wants one of key`,
		},
		{"override says nothing", keyed + "    overrides: [{key: x}]\n", `limits[0].overrides[0]: says nothing`},
		{
			"override of an unknown dimension", keyed + "    overrides: [{key: x, rate: {t: 1/s}}]\n",
			`limits[0].overrides[0].rate.t: "t": the limit does not count it`,
		},
		{
			"A22_override_twice", keyed + "    overrides: [{key: x, rate: {requests: 1/s}}, {key: x, rate: {requests: 2/s}}]\n",
			`6:51: limits[0].overrides[1].key: "x" is used twice, first by overrides[0]`,
		},
		{
			"A05_override_of_nothing",
			keyed + "    overrides: [{key: x, burst: {requests: 1}}, {key: y, burst: {requests: 0}}]\n",
			`limits[0].overrides[1].burst.requests: 0 is out of range 1..`,
		},
		{"slots in an override of a rate", keyed + "    overrides: [{key: x, concurrency: 1}]\n", `unknown field`},
		{
			"weight of nothing", head + "    queue: {weights: {x: 0}}\n",
			`limits[0].queue.weights.x: 0 is out of range 1..1000`,
		},
		{"wait too long", head + "    queue: {max_wait: 2h}\n", `limits[0].queue.max_wait: 2h0m0s is out of range 0s..1h`},
		{"floor of nothing", head + "    adaptive: {floor: 0%}\n", `limits[0].adaptive.floor: 0% is out of range 0.01%..`},
		{"no date", head + "    source: {verified_at: soon}\n", `limits[0].source.verified_at: "soon": want a date`},
		{
			"adaptive unlimited", "limits: [{name: a, unlimited: true, adaptive: {}}]",
			`limits[0].adaptive: must be absent where unlimited is true`,
		},
		{
			"warn of a budget", "retry_budgets: [{name: b, match: {client: x}, warn: {fraction: 100%}}]",
			`retry_budgets[0].warn.fraction: 100% is out of range 0%..99.99%`,
		},
		{
			"scope of a budget", "retry_budgets: [{name: b, match: {client: x}, scope: all}]",
			`retry_budgets[0].scope: "all": want one of client, retries`,
		},
	} {
		t.Run(test.name, test.check)
	}
}

// What does not come from a file is held to the same rules.
func TestWrongEnumsAreRefused(t *testing.T) {
	t.Parallel()
	limit := &quorleasev1.Limit{Name: "a", Unlimited: true, Mode: 9}
	if _, err := limitsfile.Resolve(limit); err == nil || err.Error() != "mode: 9 is no mode" {
		t.Errorf("mode 9: %v", err)
	}
	budget := &quorleasev1.RetryBudget{Name: "a", Client: "*", Scope: 9}
	if _, err := limitsfile.ResolveBudget(budget); err == nil || err.Error() != "scope: 9 is no scope" {
		t.Errorf("scope 9: %v", err)
	}
}

// A06: none, absent and unlimited are three things, also for slots and quotas.
func TestZeroSlotsAndQuotas(t *testing.T) {
	t.Parallel()
	t.Run("A06_no_slots", func(t *testing.T) {
		t.Parallel()
		l := resolved(t, "limits: [{name: a, concurrency: 0}]")
		if l.GetKind() != logv1.Kind_KIND_CONCURRENCY || l.GetDimensions()[0].GetBurst() != 0 {
			t.Errorf("concurrency: 0 became %v", l)
		}
		if shown := limitsfile.Describe(l); shown.Concurrency == nil || shown.GetConcurrency() != 0 {
			t.Errorf("it is shown as %v", shown)
		}
	})
	t.Run("A06_no_quota", func(t *testing.T) {
		t.Parallel()
		l := resolved(t, "limits: [{name: a, quota: {per: day, amounts: {t: 0}}}]")
		if l.GetKind() != logv1.Kind_KIND_QUOTA || l.GetDimensions()[0].GetBurst() != 0 {
			t.Errorf("an amount of 0 became %v", l)
		}
	})
}
