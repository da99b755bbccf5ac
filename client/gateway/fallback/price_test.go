package fallback_test

import (
	"encoding/json"
	"math/big"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

// TestPrices: what tokens cost is exact, rounded up, and fits.
func TestPrices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := fallback.Price{
			Input:  rapid.Int64Range(0, fallback.PriceMax).Draw(t, "input"),
			Output: rapid.Int64Range(0, fallback.PriceMax).Draw(t, "output"),
		}
		in, out := rapid.Int64().Draw(t, "in"), rapid.Int64().Draw(t, "out")
		want := new(big.Int)
		for _, one := range [][2]int64{{in, p.Input}, {out, p.Output}} {
			part := new(big.Int).Mul(big.NewInt(max(0, one[0])), big.NewInt(one[1]))
			part.Add(part, big.NewInt(999_999))
			want.Add(want, part.Div(part, big.NewInt(1_000_000)))
		}
		if most := big.NewInt(1 << 53); want.Cmp(most) > 0 {
			want = most
		}
		if got := p.Of(in, out); big.NewInt(got).Cmp(want) != 0 {
			t.Fatalf("%d and %d tokens at %+v cost %d, want %v", in, out, p, got, want)
		}
	})
	p := fallback.Price{Input: 2_500_000, Output: 10_000_000}
	for _, row := range [][5]int64{
		// input, asked, output max, choices, cost
		{1000, 100, 0, 0, 2500 + 1000},
		{1000, 100, 4096, 3, 2500 + 3000},
		{1000, 0, 4096, 1, 2500 + 40_960},
		{1000, -1, 0, 1, 2500},
		{1000, 1 << 62, 0, 1 << 62, 1 << 53},
	} {
		if got := p.Most(row[0], row[1], row[2], row[3]); got != row[4] {
			t.Errorf("%v costs at most %d", row, got)
		}
	}
}

// TestRename: a body asks for another model, and for nothing else that it did not ask for.
func TestRename(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, after := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "after")
		said, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		body := `{"messages":[{"model":"not this"}], "model" : ` + string(said) + ` ,"max_tokens":1.50}`
		got, err := fallback.Rename([]byte(body), after)
		if err != nil {
			t.Fatal(err)
		}
		var read struct{ Model string }
		if err := json.Unmarshal(got, &read); err != nil || read.Model != strings.ToValidUTF8(after, "�") {
			t.Fatalf("%s asks for %q (%v), want %q", got, read.Model, err, after)
		}
		head, tail := body[:strings.Index(body, `"model" : `)], ` ,"max_tokens":1.50}`
		if !strings.HasPrefix(string(got), head) || !strings.HasSuffix(string(got), tail) {
			t.Fatalf("%s became %s", body, got)
		}
	})
	for _, bad := range []string{`{}`, `{"model":1}`, `{"model":"a","model":"b"}`, `{"model":"a"`, `["model"]`, ``} {
		if got, err := fallback.Rename([]byte(bad), "b"); err == nil {
			t.Errorf("%s became %s", bad, got)
		}
	}
	u, err := url.Parse("https://h/openai/deployments/a%2Fb/chat/completions?api-version=1")
	if err != nil {
		t.Fatal(err)
	}
	const want = "https://h/openai/deployments/c/chat/completions?api-version=1"
	if got := fallback.Repath(u, "a/b", "c").String(); got != want {
		t.Error(got)
	}
}

// TestCheck: each mistake has its place, and a problem between two deployments names both.
func TestCheck(t *testing.T) {
	t.Parallel()
	table := func(name string) *provider.Table {
		got, err := provider.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	price := &fallback.Price{Input: 1, Output: 1}
	row := func(name, provider string, m fallback.Model) fallback.Row {
		return fallback.Row{Name: name, Provider: table(provider), OutputMax: 100, Model: &m}
	}
	to := func(names ...string) (list []fallback.Target) {
		for _, name := range names {
			list = append(list, fallback.Target{Deployment: name})
		}
		return list
	}
	unbounded := row("unbounded", provider.NameOpenAI, fallback.Model{Price: price})
	unbounded.OutputMax = 0
	rows := []fallback.Row{
		row("main", provider.NameOpenAI, fallback.Model{
			Price: price, To: to("own", "azure", "gone", "main", "unpriced", "unbounded", "own"),
		}),
		row("own", provider.NameCompatible, fallback.Model{Price: &fallback.Price{}, To: to("main")}),
		row("azure", provider.NameAzure, fallback.Model{Price: price}),
		row("unpriced", provider.NameOpenAI, fallback.Model{Latency: -1, To: to("own")}),
		unbounded,
		row("dear", provider.NameOpenAI, fallback.Model{
			Price: &fallback.Price{Input: -1, Output: fallback.PriceMax + 1},
		}),
		row("many", provider.NameOpenAI, fallback.Model{Price: price, To: make([]fallback.Target, 9)}),
	}
	rows[0].Model.To[0].Model = strings.Repeat("m", 513)
	wrong := map[string]bool{}
	fallback.Check(rows, func(at, _ string, _ ...any) { wrong[at] = true })
	want := map[string]bool{
		"deployments[0].fallbacks[0].model": true, "deployments[0].fallbacks[1].deployment": true,
		"deployments[0].fallbacks[2].deployment": true, "deployments[0].fallbacks[3].deployment": true,
		"deployments[0].fallbacks[4].deployment": true, "deployments[0].fallbacks[5].deployment": true,
		"deployments[0].fallbacks[6].deployment": true,
		"deployments[3].latency":                 true, "deployments[3].price": true,
		"deployments[5].price.input": true, "deployments[5].price.output": true, "deployments[6].fallbacks": true,
	}
	for j := range 9 {
		want["deployments[6].fallbacks["+string(rune('0'+j))+"].deployment"] = true
	}
	if diff := cmp.Diff(want, wrong); diff != "" {
		t.Error(diff)
	}
}
