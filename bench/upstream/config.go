package upstream

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

// API is whose interface is served.
type API string

// The providers.
const (
	OpenAI    API = "openai"
	Azure     API = "azure"
	Anthropic API = "anthropic"
	Gemini    API = "gemini"
	Vertex    API = "vertex"
	Bedrock   API = "bedrock"
)

// APIs are all of them.
func APIs() []API { return []API{OpenAI, Azure, Anthropic, Gemini, Vertex, Bedrock} }

// Config says what a provider is like.
type Config struct {
	// API is whose answers it gives. Required.
	API API
	// Rules are what the account is refused for. The zero Rules refuse nothing.
	// OpenAI, Azure and Bedrock count tokens of both directions together, in Limits.Input.
	Rules provider.Rules
	// Clock is the scenario's time. Required.
	Clock Clock
	// Start is the wall time at the clock's zero, which answers give as dates. Zero:
	// the beginning of 2026.
	Start time.Time
	// Seed is what the text follows from, besides the request.
	Seed uint64
	// Latency is how long it is until the first token. 0: none. At most an hour.
	Latency time.Duration
	// TokensPerSecond is how fast it writes. 0: at once. At most 10^6.
	TokensPerSecond int64
	// TokensPerEvent is how many tokens a stream has in one event. 0: 1.
	TokensPerEvent int
	// OutputTokens is how long an answer is, at most what the request allows. 0: 64.
	// At most 10^6.
	OutputTokens int64
	// EstimateOutput charges the output at the beginning as the request allows it,
	// and gives back what was not written in the end. Otherwise it is charged as it is
	// written, and the limit of a request has no part in it. For Anthropic only, which
	// did the former once: the other two estimate always and give nothing back.
	EstimateOutput bool
	// Burndown is how often a token counts that was written, in the end. 0: once. For Bedrock
	// only. At most 100.
	Burndown int64
	// HonourKeys: what comes again with the same credential and idempotency key, after its answer in
	// one piece was written, gets that again, and is no effect. No API does so (client/gateway/provider).
	HonourKeys bool
	// LedgerMax is how many calls the ledger keeps, the newest, and
	// of how many keys answers are known. 0: 100,000.
	LedgerMax int
}

const (
	// bodyMax is how much of a request is read, in bytes.
	bodyMax = 4 << 20
	// outputAssumed is the limit of a request that names none.
	outputAssumed = 4096
	// pingAfter is how long a stream of Anthropic's is silent at most.
	pingAfter = 5 * time.Second
)

// fill puts the defaults in and says everything that is wrong.
func (c *Config) fill() error {
	var problems []error
	if !slices.Contains(APIs(), c.API) {
		problems = append(problems, fmt.Errorf("api: %q is none of %q", c.API, APIs()))
	}
	if c.Clock == nil {
		problems = append(problems, errors.New("clock: missing"))
	}
	if c.Latency < 0 || c.Latency > time.Hour {
		problems = append(problems, fmt.Errorf("latency: %v is not within 0 and 1h", c.Latency))
	}
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"tokens per second", c.TokensPerSecond},
		{"tokens per event", int64(c.TokensPerEvent)},
		{"output tokens", c.OutputTokens},
		{"ledger max", int64(c.LedgerMax)},
	} {
		if field.value < 0 || field.value > 1e6 {
			problems = append(problems, fmt.Errorf("%s: %d is not within 0 and 10^6", field.name, field.value))
		}
	}
	if c.EstimateOutput && c.API != Anthropic {
		problems = append(problems, fmt.Errorf("estimate output: it is anthropic's alone, and this is %s", c.API))
	}
	if err := errors.Join(append(problems, c.unheard(), c.Rules.Check())...); err != nil {
		return fmt.Errorf("provider configuration: %w", err)
	}
	if c.Start.IsZero() {
		c.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if c.TokensPerEvent == 0 {
		c.TokensPerEvent = 1
	}
	if c.OutputTokens == 0 {
		c.OutputTokens = 64
	}
	if c.LedgerMax == 0 {
		c.LedgerMax = 100_000
	}
	return nil
}

// unheard says which rules nobody has seen at the provider.
func (c *Config) unheard() error {
	var problems []error
	for cause, there := range map[Cause]bool{SpendCap: c.Rules.SpendCap != nil, Daily: c.Rules.Day != nil} {
		if _, known := refusals[c.API][cause]; there && !known {
			problems = append(problems, fmt.Errorf("rules: %s was never seen to refuse for %q", c.API, cause))
		}
	}
	if c.Burndown < 0 || c.Burndown > 100 || c.Burndown > 0 && c.API != Bedrock {
		problems = append(problems, fmt.Errorf("burndown: %d is not within 0 and 100, of bedrock", c.Burndown))
	}
	return errors.Join(problems...)
}

// Usual is how an API counts an account with these limits a minute: OpenAI in buckets
// that refused calls drain too, Azure in minutes of the clock with requests in
// windows of ten seconds, all others in buckets. Gemini and Vertex limit input alone, OpenAI,
// Azure and Bedrock have one limit of tokens, in limits.Input, and limits.Output is not looked at.
func Usual(api API, limits provider.Limits) provider.Rules {
	switch api {
	case OpenAI:
		limits.Output = 0
		return provider.Rules{Limits: limits, Options: provider.Options{FailuresCount: true}}
	case Azure:
		limits.Output = 0
		return provider.Rules{Limits: limits, FixedMinute: true, Window: 10 * time.Second}
	case Gemini, Vertex, Bedrock:
		limits.Output = 0
	case Anthropic:
	}
	return provider.Rules{Limits: limits}
}
