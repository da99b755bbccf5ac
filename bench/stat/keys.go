package stat

import (
	"fmt"
	"math/rand/v2"
)

// Distribution says how callers choose among the keys.
type Distribution string

// The distributions.
const (
	// Hot: everybody wants the same key.
	Hot Distribution = "hot"
	// Uniform: every key is as likely as any other.
	Uniform Distribution = "uniform"
	// Zipf: key k is chosen in proportion to 1/(k+1)^1.1, as names and tenants
	// often are.
	Zipf Distribution = "zipf"
)

// zipfExponent is the steepness of Zipf.
const zipfExponent = 1.1

// Chooser draws keys. It is for one goroutine.
type Chooser struct{ next func() int }

// NewChooser draws from keys 0 to keys−1 by the source.
func NewChooser(d Distribution, keys int, source rand.Source) (*Chooser, error) {
	if keys < 1 {
		return nil, fmt.Errorf("keys: %d, at least 1", keys)
	}
	random := rand.New(source)
	switch d {
	case Hot:
		return &Chooser{func() int { return 0 }}, nil
	case Uniform:
		return &Chooser{func() int { return random.IntN(keys) }}, nil
	case Zipf:
		zipf := rand.NewZipf(random, zipfExponent, 1, uint64(keys-1))
		return &Chooser{func() int { return int(zipf.Uint64()) }}, nil
	default:
		return nil, fmt.Errorf("distribution: %q is none of %s, %s, %s", d, Hot, Uniform, Zipf)
	}
}

// Next is the next key.
func (c *Chooser) Next() int { return c.next() }
