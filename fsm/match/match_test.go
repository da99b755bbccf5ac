package match_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/match"
)

// limit makes a rate limit of a line: "name | attribute=value … | per … |
// dimension …"; a value may end in a star.
func limit(t testing.TB, line string) *logv1.Limit {
	t.Helper()
	parts := strings.Split(line, "|")
	if len(parts) != 4 {
		t.Fatalf("limit %q has %d parts", line, len(parts))
	}
	l := &logv1.Limit{Name: strings.TrimSpace(parts[0]), Per: strings.Fields(parts[2]), Target: 10_000}
	l.Keyed = len(l.Per) > 0
	for _, pair := range strings.Fields(parts[1]) {
		name, value, _ := strings.Cut(pair, "=")
		value, prefix := strings.CutSuffix(value, "*")
		l.Match = append(l.Match, &logv1.Match{Attribute: name, Value: value, Prefix: prefix})
	}
	for _, dimension := range strings.Fields(parts[3]) {
		l.Dimensions = append(l.Dimensions, &logv1.Dimension{Name: dimension})
	}
	return l
}

func index(t testing.TB, lines ...string) *match.Index {
	t.Helper()
	var limits []*logv1.Limit
	for _, line := range lines {
		limits = append(limits, limit(t, line))
	}
	return match.New(7, limits)
}

// attributes reads "name=value …".
func attributes(pairs string) map[string]string {
	all := map[string]string{}
	for _, pair := range strings.Fields(pairs) {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

// show writes charges as "limit/key dimension=amount, …".
func show(charges []*logv1.Charge) string {
	var list []string
	for _, c := range charges {
		list = append(list, fmt.Sprintf("%s/%s %s=%d", c.GetLimit(), c.GetKey(), c.GetDimension(), c.GetAmount()))
	}
	return strings.Join(list, ", ")
}

func TestCharges(t *testing.T) {
	t.Parallel()
	x := index(t,
		"tenant | tenant=* | tenant | requests",
		"provider | deployment=gpt-4o | | requests input_tokens output_tokens",
		"europe | deployment=gpt-4o region=eu-* | region deployment | input_tokens",
		"batch-slots | class=batch | | slots",
		"by-client | client=job-* | client | requests",
		"named-only | | | requests",
	)
	for _, test := range []struct {
		name, client, class, attributes string
		amounts                         map[string]int64
		want                            string
	}{
		{name: "one attribute", attributes: "tenant=a", want: "tenant/a requests=1"},
		{
			name: "every limit that fits, in the order of names", attributes: "tenant=a deployment=gpt-4o region=eu-west",
			amounts: map[string]int64{"input_tokens": 5},
			want:    "europe/eu-west|gpt-4o input_tokens=5, provider/ requests=1, provider/ input_tokens=5, tenant/a requests=1",
		},
		{
			name: "amounts name dimensions", attributes: "deployment=gpt-4o",
			amounts: map[string]int64{"requests": 3, "output_tokens": 7, "unknown": 9},
			want:    "provider/ requests=3, provider/ output_tokens=7",
		},
		{
			name: "a prefix that does not fit", attributes: "deployment=gpt-4o region=us-east",
			amounts: map[string]int64{"input_tokens": 5}, want: "provider/ requests=1, provider/ input_tokens=5",
		},
		{name: "exact is exact", attributes: "deployment=gpt-4o-mini tenant=a", want: "tenant/a requests=1"},
		{name: "the class is an attribute", class: "batch", want: "batch-slots/ slots=1"},
		{name: "slots have weights", class: "batch", amounts: map[string]int64{"slots": 4}, want: "batch-slots/ slots=4"},
		{name: "the client is an attribute", client: "job-7", want: "by-client/job-7 requests=1"},
		{name: "given ones first", client: "job-7", attributes: "client=job-8", want: "by-client/job-8 requests=1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := x.Charges(&match.Request{
				Client: test.client, Class: test.class, Attributes: attributes(test.attributes), Amounts: test.amounts,
			})
			if err != nil || show(got) != test.want {
				t.Errorf("got  %s, %v\nwant %s", show(got), err, test.want)
			}
		})
	}
	if x.Revision() != 7 {
		t.Errorf("revision %d", x.Revision())
	}
}

func TestNothingFits(t *testing.T) {
	t.Parallel()
	x := index(t, "tenant | tenant=* | tenant | requests", "tokens | model=* | | input_tokens", "named | | | requests")
	for _, pairs := range []string{"", "region=eu", "model=m"} {
		if got, err := x.Charges(&match.Request{Attributes: attributes(pairs)}); !errors.Is(err, match.ErrNone) {
			t.Errorf("%q: %s, %v", pairs, show(got), err)
		}
	}
	explicit := []*logv1.Charge{{Limit: "named", Dimension: "requests", Amount: 2}}
	got, err := x.Charges(&match.Request{Attributes: attributes("region=eu"), Charges: explicit})
	if err != nil || show(got) != "named/ requests=2" {
		t.Errorf("explicit alone: %s, %v", show(got), err)
	}
}

func TestExplicitChargesCountFirst(t *testing.T) {
	t.Parallel()
	x := index(t, "tenant | tenant=* | tenant | requests input_tokens")
	got, err := x.Charges(&match.Request{
		Attributes: attributes("tenant=a"), Amounts: map[string]int64{"input_tokens": 5},
		Charges: []*logv1.Charge{
			{Limit: "tenant", Key: "a", Dimension: "input_tokens", Amount: 9},
			{Limit: "tenant", Key: "b", Dimension: "requests", Amount: 1},
		},
	})
	if want := "tenant/a input_tokens=9, tenant/b requests=1, tenant/a requests=1"; err != nil || show(got) != want {
		t.Errorf("got  %s, %v\nwant %s", show(got), err, want)
	}
}

// A limit that is switched off neither charges nor refuses what it was for.
func TestOffIsNotCharged(t *testing.T) {
	t.Parallel()
	off := limit(t, "a | tenant=* | tenant | input_tokens")
	off.Mode = logv1.Mode_MODE_OFF
	r := &match.Request{Attributes: attributes("tenant=x"), Amounts: map[string]int64{"input_tokens": 3}}
	got, err := match.New(1, []*logv1.Limit{off, limit(t, "b | tenant=* | | requests")}).Charges(r)
	if err != nil || show(got) != "b/ requests=1" {
		t.Errorf("beside another: %s, %v", show(got), err)
	}
	got, err = match.New(1, []*logv1.Limit{off}).Charges(r)
	if err != nil || show(got) != "a/x input_tokens=1" {
		t.Errorf("alone: %s, %v", show(got), err)
	}
}

func TestUnlimitedIsGranted(t *testing.T) {
	t.Parallel()
	free := &logv1.Limit{
		Name: "free", Unlimited: true, Match: []*logv1.Match{{Attribute: "tenant", Value: "us"}},
	}
	got, err := match.New(1, []*logv1.Limit{free}).Charges(&match.Request{Attributes: attributes("tenant=us")})
	if err != nil || show(got) != "free/ requests=1" {
		t.Errorf("got %s, %v", show(got), err)
	}
}

func TestWhatCanNotBeCharged(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 256)
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprintf("l%d | a=* | | requests", i))
	}
	for _, test := range []struct {
		name       string
		index      *match.Index
		attributes map[string]string
		want       string
	}{
		{
			"an attribute of the key is missing", index(t, "l | a=* | b a | requests"),
			map[string]string{"a": "x"},
			`b is missing: limit "l" is per b, a`,
		},
		{
			"A22_a_key_too_long", index(t, "l | a=* | a b | requests"),
			map[string]string{"a": long, "b": long},
			`a, b make a key of 513 bytes for limit "l", more than 512`,
		},
		{"too many charges", index(t, many...), map[string]string{"a": "x"}, "17 charges are made, more than 16"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := test.index.Charges(&match.Request{Attributes: test.attributes})
			var wrong *match.Error
			if !errors.As(err, &wrong) || wrong.Problem != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestA22Keys: different attributes never share a bucket, equal ones always do.
func TestA22Keys(t *testing.T) {
	t.Parallel()
	t.Run("A22", func(t *testing.T) {
		t.Parallel()
		seen := map[string][]string{}
		for _, values := range [][]string{
			{"a", "b:c"},
			{"a:b", "c"},
			{"a", "b", "c", ""},
			{"a", "b|c"},
			{"a|b", "c"},
			{`a\`, "b"},
			{"a", `\b`},
			{`a\|b`, "c"},
			{`a\`, "|b"},
			{"a", "b", "c"},
		} {
			key := match.Key(values...)
			if other, twice := seen[key]; twice {
				t.Errorf("%q and %q share the key %q", values, other, key)
			}
			seen[key] = values
		}
		if got := match.Key("a|b"); got != "a|b" {
			t.Errorf("one value is %q, not itself", got)
		}
	})
	t.Run("A22_lists_of_one_length", func(t *testing.T) {
		t.Parallel()
		value := rapid.StringMatching(`[ab|\\]{0,4}`)
		rapid.Check(t, func(t *rapid.T) {
			lists := rapid.SliceOfN(value, 2, 3)
			a := lists.Draw(t, "a")
			b := rapid.SliceOfN(value, len(a), len(a)).Draw(t, "b")
			if got, want := match.Key(a...) == match.Key(b...), cmp.Equal(a, b); got != want {
				t.Fatalf("%q and %q: the same key %v", a, b, got)
			}
		})
	})
	t.Run("A22_the_order_of_attributes_is_that_of_per", func(t *testing.T) {
		t.Parallel()
		x := index(t, "l | a=* b=* | a b | requests")
		got, err := x.Charges(&match.Request{Attributes: map[string]string{"b": "2", "a": "1"}})
		if err != nil || show(got) != "l/1|2 requests=1" {
			t.Errorf("got %s, %v", show(got), err)
		}
	})
}

// The order in which limits come in can't show.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	var limits []*logv1.Limit
	for i := range 12 {
		limits = append(limits, limit(t, fmt.Sprintf("l%d | a=%s | | requests", i, []string{"x", "*", "x*"}[i%3])))
	}
	r := &match.Request{Attributes: attributes("a=x")}
	want, err := match.New(1, limits).Charges(r)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		got, err := match.New(1, rapid.Permutation(limits).Draw(t, "limits")).Charges(r)
		if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
			t.Fatalf("%v, -want +got:\n%s", err, diff)
		}
	})
}

func TestListening(t *testing.T) {
	t.Parallel()
	headroom := limit(t, "provider | model=* | model | requests")
	headroom.Target = 7_500
	adaptive := limit(t, "adaptive | model=* | | requests")
	adaptive.Adaptive = &logv1.Adaptive{}
	x := match.New(1, []*logv1.Limit{headroom, adaptive, limit(t, "tenant | tenant=* | tenant | requests")})
	got, err := x.Listening(&match.Request{Attributes: attributes("model=m tenant=t")})
	want := []match.Target{{Limit: "adaptive"}, {Limit: "provider", Key: "m"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if _, err := x.Listening(&match.Request{Attributes: attributes("tenant=t")}); !errors.Is(err, match.ErrNone) {
		t.Errorf("a tenant's limit listens: %v", err)
	}
}
