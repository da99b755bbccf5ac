package estimate

import (
	"container/list"
	"fmt"
	"math"
	"strings"
	"sync"
)

// The bounds of what is learnt.
const (
	// FactorMin and FactorMax are how far a correction goes: what a provider reports beyond
	// that is no tokenizer's doing.
	FactorMin = 0.5
	FactorMax = 4.0
	// memory is over how many requests an average goes: after so many, what was learnt
	// before counts 1/e.
	memory = 64
	// prior is how many requests the assumption weighs that estimates are right. One odd
	// first answer does not turn the second estimate over.
	prior = 4
)

// CorrectionsOptions are what Corrections go by. The zero value has the defaults.
type CorrectionsOptions struct {
	// PairsMax is how many pairs of tenant and model are known at once: the one that was
	// not used for longest is forgotten for another. Default 4096, under a megabyte.
	PairsMax int
}

// Corrections learn how many tokens are reported for one that was estimated, for each
// pair of tenant and model: models have different tokenizers, and tenants different
// texts. Safe for concurrent use; each call holds a lock for less than a microsecond.
type Corrections struct {
	most int

	mu     sync.Mutex
	pairs  map[pair]*list.Element
	recent list.List
	errors Errors
}

type pair struct{ tenant, model string }

// learnt is the place of a pair in the list. The two averages are of tokens and not of
// ratios, so that the sum of what is estimated becomes the sum of what is used: a limit
// counts tokens, not requests.
type learnt struct {
	pair                pair
	estimated, reported float64
}

func (l *learnt) factor() float64 {
	if l.estimated <= 0 {
		return 1
	}
	return min(max(l.reported/l.estimated, FactorMin), FactorMax)
}

// NewCorrections returns corrections that have learnt nothing. Its error names what
// options are out of range.
func NewCorrections(options CorrectionsOptions) (*Corrections, error) {
	if options.PairsMax < 0 || options.PairsMax > 1<<20 {
		return nil, fmt.Errorf("pairs %d: want 1 to %d, or 0 for 4096", options.PairsMax, 1<<20)
	}
	if options.PairsMax == 0 {
		options.PairsMax = 4096
	}
	return &Corrections{most: options.PairsMax, pairs: make(map[pair]*list.Element)}, nil
}

// Tokens corrects an estimate ≥ 0: times what was learnt, rounded up.
func (c *Corrections) Tokens(tenant, model string, estimated int64) int64 {
	return corrected(estimated, c.Factor(tenant, model))
}

func corrected(estimated int64, factor float64) int64 {
	return int64(math.Ceil(float64(max(0, estimated)) * factor))
}

// Factor is what an estimate is multiplied by, FactorMin to FactorMax, and 1 of a pair of
// which nothing was learnt.
func (c *Corrections) Factor(tenant, model string) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	place := c.pairs[pair{tenant, model}]
	if place == nil {
		return 1
	}
	c.recent.MoveToFront(place)
	return of(place).factor()
}

// Learn says that a prompt of which a Body had estimated so many tokens, uncorrected,
// was reported to have so many. What is not above 0 says nothing. Only what a provider
// has counted completely may be learnt from.
func (c *Corrections) Learn(tenant, model string, estimated, reported int64) {
	if estimated <= 0 || reported <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.pairLocked(pair{tenant, model}, float64(estimated))
	c.errors.add(corrected(estimated, l.factor()), reported)
	// One report can't say much more than the bounds do: it would stay for a long time. Cut
	// at the bounds themselves it would pull the average of what lies near them inwards.
	used := min(max(float64(reported), FactorMin/2*float64(estimated)), 2*FactorMax*float64(estimated))
	const fade = 1 - 1.0/memory
	l.estimated = l.estimated*fade + float64(estimated)
	l.reported = l.reported*fade + used
}

// pairLocked finds a pair, or makes it, forgetting another one for it.
func (c *Corrections) pairLocked(p pair, estimated float64) *learnt {
	if place := c.pairs[p]; place != nil {
		c.recent.MoveToFront(place)
		return of(place)
	}
	if len(c.pairs) >= c.most {
		oldest := c.recent.Back()
		delete(c.pairs, of(oldest).pair)
		c.recent.Remove(oldest)
	}
	// The names may be parts of something large.
	p = pair{strings.Clone(p.tenant), strings.Clone(p.model)}
	l := &learnt{pair: p, estimated: prior * estimated, reported: prior * estimated}
	c.pairs[p] = c.recent.PushFront(l)
	return l
}

func of(place *list.Element) *learnt {
	l, ok := place.Value.(*learnt)
	if !ok {
		panic(fmt.Sprintf("a list of pairs holds %T", place.Value))
	}
	return l
}

// Len is how many pairs are known.
func (c *Corrections) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pairs)
}

// Errors is how far corrected estimates were off so far.
func (c *Corrections) Errors() Errors {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.errors
}
