package convert

import (
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/match"
)

// Bounds of what is said of a piece of work.
const (
	attributesMax = 32
	amountsMax    = 16
	// WaitMax is how long an acquire may wait in the queue.
	WaitMax = time.Hour
)

// describer is a request that says what its work is.
type describer interface {
	GetAttributes() map[string]string
	GetAmounts() map[string]int64
}

// attributes checks what a request says of its work.
func (c *checker) attributes(r describer) {
	if len(r.GetAttributes())+len(r.GetAmounts()) == 0 {
		// Most say nothing, and to sort nothing takes longer than to check the rest.
		return
	}
	before := len(c.fields)
	if n := len(r.GetAttributes()); n > attributesMax {
		c.fail("attributes", "%d, more than %d", n, attributesMax)
		return
	}
	for name, value := range r.GetAttributes() {
		if problem := limitsfile.AttributeProblem(name); problem != "" {
			c.fail("attributes", "%s", problem)
		} else if problem := limitsfile.ValueProblem(value); problem != "" {
			c.fail("attributes."+name, "%s", problem)
		}
	}
	switch n := len(r.GetAmounts()); {
	case n > amountsMax:
		c.fail("amounts", "%d, more than %d", n, amountsMax)
		return
	case n > 0 && len(r.GetAttributes()) == 0:
		c.fail("amounts", "must be absent where there are no attributes: charges have amounts of their own")
	}
	for name, n := range r.GetAmounts() {
		if problem := limitsfile.DimensionProblem(name); problem != "" {
			c.fail("amounts", "%s", problem)
		} else if n < 1 || n > bucket.MaxTokens {
			c.fail("amounts."+name, "%d is out of range 1..%d", n, int64(bucket.MaxTokens))
		}
	}
	// The order of a map is another one every time.
	slices.SortStableFunc(c.fields[before:], func(a, b *limitsfile.FieldError) int {
		return strings.Compare(a.Field+a.Problem, b.Field+b.Problem)
	})
}

// Described is what op says of its work beside its charges, nil where it says
// nothing: then there is nothing to expand. r is the request that op was made of.
func Described(r describer, op *logv1.Acquire) *match.Request {
	if len(r.GetAttributes()) == 0 {
		return nil
	}
	return &match.Request{
		Client: op.GetClient(), Class: op.GetClass(), Attributes: r.GetAttributes(), Amounts: r.GetAmounts(),
		Charges: op.GetCharges(),
	}
}

// The tags keep the digests of what was asked for apart. They are kept with leases:
// never change one.
const (
	tagAsked     = 201
	tagCharge    = 202
	tagAttribute = 203
	tagAmount    = 204
)

// asked is what two acquires of one lease id are compared by where the work is
// described: the charges that are made of it may be others when it is asked for
// again (G4). It is never 0, which says that the charges are what was asked for.
func asked(r *quorleasev1.AcquireRequest) uint64 {
	// Sums do not depend on the order, which a map has another one of every time.
	var charges, attributes, amounts uint64
	for _, c := range r.GetCharges() {
		one := digest.New(tagCharge)
		one.Text(c.GetLimit())
		one.Text(c.GetKey())
		one.Text(c.GetDimension())
		one.Int(c.GetAmount())
		charges += one.Value()
	}
	for name, value := range r.GetAttributes() {
		one := digest.New(tagAttribute)
		one.Text(name)
		one.Text(value)
		attributes += one.Value()
	}
	for name, n := range r.GetAmounts() {
		one := digest.New(tagAmount)
		one.Text(name)
		one.Int(n)
		amounts += one.Value()
	}
	sum := digest.New(tagAsked)
	for _, part := range []uint64{charges, attributes, amounts} {
		sum.Word(part)
	}
	return max(sum.Value(), 1)
}
