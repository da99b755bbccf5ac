package queue

import "time"

// Terms are what one limit says of those that wait at its keys.
type Terms struct {
	// Classes are the names of the limit's classes in listed order. None: there is
	// one, and its name is empty.
	Classes []string
	// Max is how many may wait at one key. 0: nobody waits.
	Max int64
	// MaxTokens is how many tokens of one dimension they may ask for together. 0:
	// any number.
	MaxTokens int64
	// MaxWait is how long one may wait, 0: as long as it likes.
	MaxWait time.Duration
	// Weights are what clients weigh against one another, 1 where none is given.
	Weights map[string]int64
	// Dimensions say how fast tokens come. They decide what to tell of the wait and
	// what to keep for heads; one that is missing is taken to be unknown.
	Dimensions []Dimension
	// ForKey are the dimensions of one key. Nil: those of the limit.
	ForKey func(key string) []Dimension
}

func (t *Terms) dimensions(key string) []Dimension {
	if t.ForKey == nil {
		return t.Dimensions
	}
	return t.ForKey(key)
}

// Dimension is how fast the tokens of one dimension come.
type Dimension struct {
	Name string
	// Tokens flow in each interval Per, positive. For slots these are all slots,
	// and the life of a lease.
	Tokens int64
	Per    time.Duration
	// Parts are those of the classes, in listed order.
	Parts []Part
}

// Part is what one class is guaranteed.
type Part struct {
	// Share of the rate, in hundredths of a percent.
	Share int64
	// SubBurst is the size of its sub-bucket, in tokens.
	SubBurst int64
}

func (t *Terms) weight(client string) int64 { return max(1, t.Weights[client]) }
