// Package callers is the part of a limits file that says how those behave who ask
// for limits: how long they wait, who of them retries, what they watch. Nothing
// is applied of it and no node ever sees it: it is there to be examined. It is
// pure.
package callers

import (
	"math/big"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/written"
)

// Delay is what a caller does between two attempts.
type Delay int32

// The delays that callers are seen with.
const (
	// Unknown: the file does not say.
	Unknown Delay = iota
	// None: the next attempt follows at once.
	None
	// Fixed: the same delay each time.
	Fixed
	// Exponential: each delay is longer than the one before.
	Exponential
)

var delays = written.Words[Delay]{{"none", None}, {"fixed", Fixed}, {"exponential", Exponential}}

// String is the delay as the file calls it.
func (d Delay) String() string { return delays.Name(d) }

// What a caller can measure, as the file calls it.
const (
	ProviderErrors = "provider_errors"
	QueueDepth     = "queue_depth"
	OldestWait     = "oldest_wait"
)

var measures = written.Words[int32]{
	{ProviderErrors, 0},
	{QueueDepth, 1},
	{OldestWait, 2},
	{"duplicates", 3},
	{"latency", 4},
	{"retries", 5},
	{"spend", 6},
}

// layers are the places where something may try again, from the inside out.
var layers = []string{"sdk", "service", "gateway", "queue", "job"}

// Bounds of what a file can say.
const (
	// ClientsMax bounds the section.
	ClientsMax   = 1000
	attemptsMax  = 1000
	instancesMax = 1_000_000_000
)

// Layer is one place that tries again.
type Layer struct {
	Name string
	// Attempts counts the first one too, 1 to 1000: 1 is no retry.
	Attempts int64
}

// Client is how one kind of caller behaves. What is nil is unknown.
type Client struct {
	// Name is a client's name, or a prefix and a star, once in a file.
	Name string
	// Instances is how many of them there are at once, at least 1.
	Instances *int64
	// Delay is what is between two attempts, and Jitter the part of it that is
	// random, in hundredths of a percent.
	Delay  Delay
	Jitter *int64
	// Attempts are in the order from the inside out.
	Attempts []Layer
	// FallbackAfter is how many refusals it takes until the caller goes elsewhere,
	// at least 1.
	FallbackAfter *int64
	// Honours says whether a wait that it is told is kept, Dedupes whether the same
	// work that comes twice is done once.
	Honours, Dedupes *bool
	// Measures is what somebody looks at. Empty and not nil is nothing.
	Measures []string
}

// Fleet says whether more than one of them may be at work: one that is known to
// be alone is in step with nobody.
func (c *Client) Fleet() bool { return c.Instances == nil || *c.Instances > 1 }

// Product is how many attempts one piece of work can become where every layer
// tries as often as it may; 1 where nothing is known.
func (c *Client) Product() *big.Int {
	all := big.NewInt(1)
	for _, l := range c.Attempts {
		all.Mul(all, big.NewInt(l.Attempts))
	}
	return all
}

// Owners are the layers that try again at all.
func (c *Client) Owners() (names []string) {
	for _, l := range c.Attempts {
		if l.Attempts > 1 {
			names = append(names, l.Name)
		}
	}
	return names
}

// Reader reads values of a file and keeps what is wrong with them, with its
// place. Its functions take nil for a field that is absent.
type Reader struct {
	// Items are those of a list, Fields those of a mapping with known keys.
	Items  func(n ast.Node, path string) []ast.Node
	Fields func(n ast.Node, path string, known ...string) map[string]ast.Node
	// Text is a text, Size a whole number, Share a part in hundredths of a percent,
	// Boolean true or false; "", nil or false where they are absent.
	Text        func(n ast.Node, path string) string
	Size, Share func(n ast.Node, path string) *int64
	Boolean     func(n ast.Node, path string) bool
	// Pattern says why a text is no client's name, nor a prefix and a star.
	Pattern func(string) string
	// Fail is told what is wrong with a field, and where; n may be nil.
	Fail func(n ast.Node, path, format string, args ...any)
}
