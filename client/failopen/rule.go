package failopen

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// Mode says what to do with a limit while nobody answers.
type Mode int

// The modes.
const (
	// Open admits every first attempt, and retries inside the retry budget: a
	// broken guardrail must not become the outage.
	Open Mode = iota
	// Share paces at this client's share of the limit, from an empty bucket.
	Share
	// Closed refuses.
	Closed
)

// String is the mode as the limits file spells it.
func (m Mode) String() string { return name(int(m), "open", "share", "closed") }

// WholePPM is all of a limit in the unit of shares, parts per million.
const WholePPM = 1_000_000

// Fallback is the rule of one limit.
type Fallback struct {
	// Limit is its name.
	Limit string
	// Mode is what to do with it.
	Mode Mode
	// SharePPM is this client's share of it in parts per million, 0 to WholePPM. 0
	// is none; nil is that no share is known (T52), and then the share that the
	// client was configured with counts.
	SharePPM *int64
	// Dimensions are what the share is of. One that is not named can't be paced:
	// in mode Share it is refused.
	Dimensions []Dimension
	// Unlimited limits are always granted, and not counted, whatever the mode.
	Unlimited bool
}

// Dimension is the rate and the burst of one dimension of a limit.
type Dimension struct {
	// Name is what is counted.
	Name string
	// Amount is the rate in tokens an Interval, 0 to bucket.MaxTokens.
	Amount int64
	// Interval is at least a nanosecond.
	Interval time.Duration
	// Burst is the most tokens the bucket holds, 0 to bucket.MaxTokens.
	Burst int64
}

// check names the first field that can't be used.
func (f *Fallback) check() error {
	if f.Mode < Open || f.Mode > Closed {
		return fmt.Errorf("limit %q: mode %d: must be from %d to %d", f.Limit, f.Mode, Open, Closed)
	}
	if f.SharePPM != nil && (*f.SharePPM < 0 || *f.SharePPM > WholePPM) {
		return fmt.Errorf("limit %q: share %d ppm: must be from 0 to %d", f.Limit, *f.SharePPM, WholePPM)
	}
	for i, d := range f.Dimensions {
		if err := d.check(); err != nil {
			return fmt.Errorf("limit %q: dimension %q: %w", f.Limit, d.Name, err)
		}
		if slices.ContainsFunc(f.Dimensions[:i], func(o Dimension) bool { return o.Name == d.Name }) {
			return fmt.Errorf("limit %q: dimension %q: is there twice", f.Limit, d.Name)
		}
	}
	return nil
}

func (d *Dimension) check() error {
	switch {
	case d.Amount < 0 || d.Amount > bucket.MaxTokens:
		return fmt.Errorf("amount %d: must be from 0 to %d", d.Amount, int64(bucket.MaxTokens))
	case d.Burst < 0 || d.Burst > bucket.MaxTokens:
		return fmt.Errorf("burst %d: must be from 0 to %d", d.Burst, int64(bucket.MaxTokens))
	case d.Interval < 1:
		return fmt.Errorf("interval %v: must be positive", d.Interval)
	}
	return nil
}

// equal says whether two rules are the same, so that learning one again changes
// nothing.
func (f *Fallback) equal(o *Fallback) bool {
	return f.Limit == o.Limit && f.Mode == o.Mode && f.Unlimited == o.Unlimited &&
		(f.SharePPM == nil) == (o.SharePPM == nil) && (f.SharePPM == nil || *f.SharePPM == *o.SharePPM) &&
		slices.Equal(f.Dimensions, o.Dimensions)
}

// rule is a Fallback that can be decided by. It never changes, but for the
// revision.
type rule struct {
	Fallback
	// revision of the limits that it was learnt with. learnt is false for a rule
	// of the configuration.
	revision uint64
	learnt   bool
	// booked: its share is what the authority promised last, 0 before.
	booked bool
	kept   kept
	// since is when it was learnt: a key that is used for the first time has not
	// earned at this rate before.
	since bucket.Instant
	// share is what counts, in parts per million.
	share int64
	paces []pace
}

// pace is one dimension of a rule in mode Share.
type pace struct {
	Dimension
	// shape is nil where nothing can be admitted.
	shape *bucket.Shape
}

// compile checks a rule and works out its arithmetic. share is what counts where
// the rule has none.
func compile(f Fallback, share int64) (*rule, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	r := &rule{Fallback: f, share: share}
	if f.SharePPM != nil {
		known := *f.SharePPM
		r.SharePPM, r.share = &known, known
	}
	r.Dimensions = slices.Clone(f.Dimensions)
	for _, d := range r.Dimensions {
		p := pace{Dimension: d}
		if f.Mode == Share {
			shape, err := shareOf(d, r.share)
			if err != nil {
				return nil, fmt.Errorf("limit %q: dimension %q: share of %d ppm: %w", f.Limit, d.Name, r.share, err)
			}
			p.shape = shape
		}
		r.paces = append(r.paces, p)
	}
	return r, nil
}

// pace is the dimension of that name, nil where the rule has none. There are a
// handful.
func (r *rule) pace(dimension string) *pace {
	for i := range r.paces {
		if r.paces[i].Name == dimension {
			return &r.paces[i]
		}
	}
	return nil
}
