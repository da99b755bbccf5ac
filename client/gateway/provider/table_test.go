package provider

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTables(t *testing.T) {
	for _, name := range Names() {
		table, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run("S3-48_every_row_has_a_source_and_a_day/"+name, func(t *testing.T) {
			if err := table.Check(); err != nil || table.Name != name {
				t.Errorf("%s: %v", table.Name, err)
			}
		})
		for i, s := range table.Signals {
			for _, words := range slices.Concat(s.Code, s.Says, s.Begins) {
				if words != strings.ToLower(words) {
					t.Errorf("%s: signals[%d]: %q is compared in lower case", name, i, words)
				}
			}
		}
	}
	if _, err := Named("acme"); err == nil || !strings.Contains(err.Error(), `provider: "acme": must be one of`) {
		t.Errorf("acme: %v", err)
	}
}

func TestATableWithoutADayIsFound(t *testing.T) {
	t.Run("S3-48", func(t *testing.T) {
		for name, spoil := range map[string]func(*Table){
			"signals[0]: on":    func(x *Table) { x.Signals[0].Seen.On = "" },
			"headers[0]: on":    func(x *Table) { x.Headers[0].Seen.On = "yesterday" },
			"routes[0]: where":  func(x *Table) { x.Routes[0].Seen.Where = "" },
			"counting[0]: evid": func(x *Table) { x.Counting.Seen.How = 0 },
			"signals[1]: fits":  func(x *Table) { x.Signals[1] = Signal{Class: Other} },
			"signals[1]: class": func(x *Table) { x.Signals[1].Class = None },
			"counts[0]: weight": func(x *Table) { x.Counting.Counts[0].OutputPPM = -1 },
			"counts[1]: refill": func(x *Table) { x.Counting.Counts[1].Refill = 0 },
			"routes[1]: model":  func(x *Table) { x.Routes[1].Model = InPath },
		} {
			table := openAI
			table.Signals = append([]Signal{}, openAI.Signals...)
			table.Headers = append([]Header{}, openAI.Headers...)
			table.Routes = append([]Route{}, openAI.Routes...)
			table.Counting.Counts = append([]Count{}, openAI.Counting.Counts...)
			spoil(&table)
			if err := table.Check(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want %s", err, name)
			}
		}
	})
}

func TestStaleness(t *testing.T) {
	t.Run("S3-48", func(t *testing.T) {
		table := openAI
		table.Routes = append([]Route{}, openAI.Routes...)
		table.Routes[2].Seen.On = "2026-01-02"
		now := time.Date(2026, 1, 12, 0, 0, 0, 0, time.UTC)
		if row, age := table.Oldest(now); row != table.Routes[2].Seen || age != 10*24*time.Hour {
			t.Errorf("%+v for %s, want the third route for 240h", row, age)
		}
		if _, age := table.Oldest(now.AddDate(-1, 0, 0)); age != 0 {
			t.Errorf("%s before it was looked at, want 0", age)
		}
	})
}

func TestCharges(t *testing.T) {
	work := Work{Input: 2500, MaxOutput: 300, ModelMax: 8000}
	unbounded := Work{Input: 2500, ModelMax: 8000}
	old := anthropic.Counting
	old.Counts = append([]Count{}, old.Counts...)
	old.Counts[2].Estimate = MaxOnly
	counted := anthropic.Counting
	counted.Counts = append([]Count{}, counted.Counts...)
	counted.Counts[1].CacheReadPPM = Whole / 10
	for _, c := range []struct {
		name     string
		counting *Counting
		work     Work
		want     map[string]int64
	}{
		{"openai_the_larger", &openAI.Counting, work, map[string]int64{Requests: 1, Tokens: 2500}},
		{"openai_output", &openAI.Counting, Work{Input: 9, MaxOutput: 300}, map[string]int64{Requests: 1, Tokens: 300}},
		{"openai_unbounded", &openAI.Counting, unbounded, map[string]int64{Requests: 1, Tokens: 2500}},
		{"azure_both", &azure.Counting, work, map[string]int64{Requests: 1, Tokens: 2800}},
		{"azure_unbounded", &azure.Counting, unbounded, map[string]int64{Requests: 1, Tokens: 10500}},
		{
			"azure_best_of", &azure.Counting,
			Work{Input: 2500, MaxOutput: 300, Choices: 3},
			map[string]int64{Requests: 1, Tokens: 3400},
		},
		{
			"S3-04_anthropic_three", &anthropic.Counting, work,
			map[string]int64{Requests: 1, InputTokens: 2500, OutputTokens: 1},
		},
		{"anthropic_of_old", &old, work, map[string]int64{Requests: 1, InputTokens: 2500, OutputTokens: 300}},
		{
			"anthropic_cached", &anthropic.Counting,
			Work{Input: 2500, CacheRead: 2400},
			map[string]int64{Requests: 1, InputTokens: 100, OutputTokens: 1},
		},
		{
			"a_model_that_counts_a_tenth", &counted,
			Work{Input: 2500, CacheRead: 2400},
			map[string]int64{Requests: 1, InputTokens: 340, OutputTokens: 1},
		},
		{"compatible_unbounded", &compatible.Counting, unbounded, map[string]int64{Requests: 1, Tokens: 10500}},
		{
			"nothing", &compatible.Counting,
			Work{Input: -5, CacheRead: 9, MaxOutput: -1},
			map[string]int64{Requests: 1, Tokens: 1},
		},
		{
			"more_than_there_is", &compatible.Counting,
			Work{Input: 1 << 62, MaxOutput: 1 << 62, Choices: 1 << 40},
			map[string]int64{Requests: 1, Tokens: countMax},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.counting.Charge(c.work)); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", c.work, diff)
			}
		})
	}
}

func TestSettlements(t *testing.T) {
	usage := Usage{Fresh: 100, CacheRead: 2000, CacheWrite: 400, Output: 250}
	for _, c := range []struct {
		name  string
		table *Table
		usage Usage
		want  map[string]int64
	}{
		{"openai_keeps_the_estimate", &openAI, usage, map[string]int64{}},
		{"openai_counts_what_failed", &openAI, Usage{Refused: true}, map[string]int64{Tokens: 0}},
		{"azure_keeps_the_estimate", &azure, usage, map[string]int64{}},
		{"azure_counts_no_failure", &azure, Usage{Refused: true}, map[string]int64{Requests: 0, Tokens: 0}},
		{"S3-09_anthropic", &anthropic, usage, map[string]int64{InputTokens: 500, OutputTokens: 250}},
		{
			"anthropic_counts_no_failure", &anthropic,
			Usage{Refused: true},
			map[string]int64{Requests: 0, InputTokens: 0, OutputTokens: 0},
		},
		{"compatible", &compatible, usage, map[string]int64{Tokens: 2750}},
		{"nothing", &compatible, Usage{Fresh: -1, Output: -1}, map[string]int64{Tokens: 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.table.Counting.Settle(c.usage)); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", c.usage, diff)
			}
		})
	}
}

// TestAmountsAreAmounts wants every charge to be one that the authority takes, and
// more work never to be charged less.
func TestAmountsAreAmounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := tables[rapid.SampledFrom(Names()).Draw(t, "table")]
		any64 := rapid.Int64()
		w := Work{
			any64.Draw(t, "prompt"), any64.Draw(t, "cached"), any64.Draw(t, "max"),
			any64.Draw(t, "model"), any64.Draw(t, "best"),
		}
		charge := table.Counting.Charge(w)
		for dimension, amount := range charge {
			if amount < 1 || amount > countMax {
				t.Fatalf("%s: %d of %s for %+v", table.Name, amount, dimension, w)
			}
		}
		if w.Input < 1<<62 {
			w.Input += 1 << 10
		}
		for dimension, amount := range table.Counting.Charge(w) {
			if amount < charge[dimension] {
				t.Fatalf("%s: %d of %s for %+v, %d for less", table.Name, amount, dimension, w, charge[dimension])
			}
		}
		u := Usage{any64.Draw(t, "in"), any64.Draw(t, "read"), any64.Draw(t, "write"), any64.Draw(t, "out"), false, ""}
		for dimension, amount := range table.Counting.Settle(u) {
			if amount < 0 || amount > countMax {
				t.Fatalf("%s: %d of %s for %+v", table.Name, amount, dimension, u)
			}
		}
	})
}

func TestManyChoicesAreNotFew(t *testing.T) {
	t.Parallel()
	w := Work{Input: 1, MaxOutput: 1 << 20, Choices: 1 << 58}
	if got := openAI.Counting.Charge(w)[Tokens]; got != countMax {
		t.Errorf("%d tokens for %+v, want %d", got, w, int64(countMax))
	}
}

func TestRoutes(t *testing.T) {
	for _, c := range []struct {
		table            *Table
		path             string
		kind             Kind
		model            Model
		body             Body
		deployment, name string
	}{
		{&openAI, "/v1/chat/completions", Chat, InBody, OpenAIBody, "", ""},
		{&openAI, "/v1/responses/", Responses, InBody, OpenAIBody, "", ""},
		{&openAI, "/v1/models", "", 0, 0, "", ""},
		{&openAI, "/x/v1/chat/completions", "", 0, 0, "", ""},
		{&azure, "/openai/deployments/prod-4/chat/completions", Chat, InPath, OpenAIBody, "prod-4", ""},
		{&azure, "/openai/deployments//chat/completions", "", 0, 0, "", ""},
		{&azure, "/openai/deployments/" + strings.Repeat("d", 129) + "/embeddings", "", 0, 0, "", ""},
		{&azure, "/openai/deployments/\xff/embeddings", "", 0, 0, "", ""},
		{&azure, "/openai/v1/responses", Responses, InBody, OpenAIBody, "", ""},
		{&anthropic, "/v1/messages", Messages, InBody, AnthropicBody, "", ""},
		{&anthropic, "/v1/messages/count_tokens", "", 0, 0, "", ""},
		{&compatible, "/chat/completions", Chat, InBody, OpenAIBody, "", ""},
		{&compatible, "/api/v1/embeddings", Embeddings, InBody, OpenAIBody, "", ""},
		{&compatible, "/a/b/c/d/e/completions", "", 0, 0, "", ""},
		{&compatible, "/" + strings.Repeat("x/", 600) + "completions", "", 0, 0, "", ""},
		{&compatible, "", "", 0, 0, "", ""},
	} {
		m, ok := c.table.Route(c.path)
		if ok != (c.kind != "") {
			t.Errorf("%s %.80q: found %t", c.table.Name, c.path, ok)
			continue
		}
		if ok && (m.Kind != c.kind || m.Model != c.model || m.Body != c.body || m.Deployment != c.deployment) {
			t.Errorf("%s %.80q: got %+v %q, want %+v", c.table.Name, c.path, *m.Route, m.Deployment, c)
		}
	}
}
