package check

import (
	"fmt"
	"math"
)

// Bucket names one.
type Bucket struct{ Limit, Key, Dimension string }

// String is limit/key dimension.
func (b Bucket) String() string {
	if b.Key == "" {
		return b.Limit + " " + b.Dimension
	}
	return b.Limit + "/" + b.Key + " " + b.Dimension
}

// Verdict is what a check came to.
type Verdict struct {
	// Takes counts debits, or from outside slots with grants; Tokens is their sum,
	// less what came back.
	Takes, Tokens int64
	// Buckets is how many there were.
	Buckets int
	// Closest is the fewest tokens that were left of the bound at any moment.
	// Negative: it was broken.
	Closest int64
	// Broken counts the moments at which it was broken, Worst says which was the
	// worst.
	Broken int
	Worst  string
}

// Said is what it came to in words. How says what was looked at.
func (v Verdict) Said(how string) string {
	text := fmt.Sprintf("%d tokens in %d buckets; %s", v.Tokens, v.Buckets, how)
	if v.Takes > 0 {
		text += fmt.Sprintf("; at the closest %d tokens were left", v.Closest)
	}
	if v.Broken > 0 {
		text += fmt.Sprintf("; broken at %d moments, worst %s", v.Broken, v.Worst)
	}
	return text
}

func newVerdict() Verdict { return Verdict{Closest: math.MaxInt64} }

// took books one take of a bucket.
func (v *Verdict) took(b *budget, bucket Bucket, tokens, now int64) {
	over := b.take(tokens)
	v.Takes++
	v.Tokens += tokens
	if over > 0 {
		v.Broken++
	}
	if left := b.tokens(); left < v.Closest {
		v.Closest = left
		if over > 0 {
			v.Worst = fmt.Sprintf("%v: %d tokens above burst + rate·d at %.6f s", bucket, over, float64(now)/1e9)
		}
	}
}

// Debits holds the debits of a log to G1, by the stamps of its entries. It is for
// one goroutine; times never go back.
type Debits struct {
	verdict Verdict
	// fresh are buckets that nobody has touched, by limit and dimension. One with
	// a key begins as a copy.
	fresh map[Bucket]*budget
	// touched are the others; of lists them by the limit and dimension.
	touched map[Bucket]*budget
	of      map[Bucket][]*budget
}

// NewDebits knows of no limit.
func NewDebits() *Debits {
	return &Debits{
		verdict: newVerdict(),
		fresh:   map[Bucket]*budget{}, touched: map[Bucket]*budget{}, of: map[Bucket][]*budget{},
	}
}

// Limit says that a dimension of a limit has these numbers from now on.
func (d *Debits) Limit(limit, dimension string, spec Spec, now int64) {
	shared := Bucket{Limit: limit, Dimension: dimension}
	fresh := d.fresh[shared]
	if fresh == nil {
		d.fresh[shared] = newBudget(spec, now)
		return
	}
	for _, b := range append([]*budget{fresh}, d.of[shared]...) {
		b.advance(now)
		b.change(spec)
	}
}

// Forget drops a limit or a dimension that is no more. One that comes back is
// looked at anew.
func (d *Debits) Forget(limit, dimension string) {
	shared := Bucket{Limit: limit, Dimension: dimension}
	delete(d.fresh, shared)
	delete(d.of, shared)
	for bucket := range d.touched {
		if bucket.Limit == limit && bucket.Dimension == dimension {
			delete(d.touched, bucket)
		}
	}
}

// Debit takes tokens for a grant.
func (d *Debits) Debit(bucket Bucket, tokens, now int64) {
	if b := d.bucket(bucket); b != nil {
		b.advance(now)
		d.verdict.took(b, bucket, tokens, now)
	}
}

// Refund puts tokens back.
func (d *Debits) Refund(bucket Bucket, tokens, now int64) {
	if b := d.bucket(bucket); b != nil {
		b.advance(now)
		b.give(tokens)
		d.verdict.Tokens -= tokens
	}
}

// Adjusted begins anew with one bucket: an operator's word is the one way round
// the bound.
func (d *Debits) Adjusted(bucket Bucket, now int64) {
	if b := d.bucket(bucket); b != nil {
		b.last = now
		b.left.Set(&b.full)
	}
}

// bucket is nil where nothing bounds it.
func (d *Debits) bucket(bucket Bucket) *budget {
	if b := d.touched[bucket]; b != nil {
		return b
	}
	shared := Bucket{Limit: bucket.Limit, Dimension: bucket.Dimension}
	fresh := d.fresh[shared]
	if fresh == nil {
		return nil
	}
	b := fresh.clone()
	d.touched[bucket] = b
	d.of[shared] = append(d.of[shared], b)
	d.verdict.Buckets++
	return b
}

// Verdict is what came of it so far.
func (d *Debits) Verdict() Verdict { return d.verdict }
