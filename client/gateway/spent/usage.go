package spent

import "github.com/quorlease/quorlease/client/gateway/provider"

// State is how much an answer has said of its usage.
type State uint8

const (
	// None: nothing was said, and nothing can be counted. What was charged stays.
	None State = iota
	// Partial: the answer ended before it said what it used in the end, or did not say it.
	// The numbers are what is known, and what was counted.
	Partial
	// Complete: the numbers are the provider's.
	Complete
)

func (s State) String() string {
	switch s {
	case Partial:
		return "partial"
	case Complete:
		return "complete"
	default:
		return "none"
	}
}

// Usage is what a request used, in tokens.
type Usage struct {
	// Input is the whole prompt, also what was read from or written to a cache. Providers
	// differ in that: here it is always so.
	Input int64
	// Output is what was generated, also what the client does not see.
	Output int64
	// CacheRead and CacheWrite are those parts of Input that came out of a cache and went
	// into one.
	CacheRead, CacheWrite int64
	State                 State
}

// Counted is what a provider's limits are settled with (provider.Counting): the parts of
// the prompt apart, since some do not count what came out of a cache.
func (u Usage) Counted() provider.Usage {
	return provider.Usage{
		Fresh: u.Input - u.CacheRead - u.CacheWrite, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output,
	}
}

// number is one that is read from a usage object.
type number uint8

const (
	prompt     number = iota // OpenAI, Gemini: everything
	input                    // Anthropic: what no cache had to do with. Responses: everything
	output                   // what was generated
	thoughts                 // Gemini: more output, beside the other
	cached                   // what of prompt or input came out of a cache
	cacheRead                // Anthropic: beside input
	cacheWrite               // Anthropic: beside input
	total                    // input and output
	numbersLen
)

// numbers are the last that were given of each.
type numbers struct {
	of    [numbersLen]int64
	given [numbersLen]bool
	// within: the number of input has those of caches in it, as details of it show.
	within bool
}

// merge takes over what a later usage object says. Numbers are those of the whole
// answer so far and replace others: adding them up would count a long answer many times.
// Nothing of the prompt is no news: some say it once, at the beginning, and some at the
// end.
func (n *numbers) merge(later *numbers) {
	for i := range n.of {
		if later.given[i] && (later.of[i] > 0 || number(i) == output || number(i) == thoughts) {
			n.of[i], n.given[i] = later.of[i], true
		}
	}
	n.within = n.within || later.within
}

func (n *numbers) usage() Usage {
	u := Usage{
		Output:    n.of[output] + n.of[thoughts],
		CacheRead: max(n.of[cached], n.of[cacheRead]), CacheWrite: n.of[cacheWrite],
	}
	switch {
	case n.of[prompt] > 0:
		u.Input = n.of[prompt]
	case n.of[input] > 0 && n.within:
		u.Input = n.of[input]
	case n.of[input] > 0 || u.CacheRead > 0 || u.CacheWrite > 0:
		u.Input = n.of[input] + u.CacheRead + u.CacheWrite
	default:
		// Whoever only says the sum has generated nothing: embeddings, rankings.
		u.Input = max(0, n.of[total]-u.Output)
	}
	u.CacheRead = min(u.CacheRead, u.Input)
	u.CacheWrite = min(u.CacheWrite, u.Input-u.CacheRead)
	return u
}
