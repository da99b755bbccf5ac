package client

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorlease/quorlease/client/block"
	"github.com/quorlease/quorlease/client/names"
)

// Bounds of one request: those of the protocol. They are checked here because a
// client that decides by itself has to refuse the same that a node refuses.
const (
	chargesMax = 16
	usagesMax  = 64

	attributesMax = 32
	amountsMax    = 16
	waitMax       = time.Hour
)

// BadRequestError is what is wrong with one field of a request. Nothing
// happened.
type BadRequestError struct {
	// Field is its name, Problem says what is wrong and which values are right.
	Field, Problem string
}

// Error names the field, its value and its bound.
func (e *BadRequestError) Error() string { return e.Field + ": " + e.Problem }

// check is nil where the request can be asked, or its first problem.
func (r *Request) check() error {
	if problem := names.ClientProblem(r.Client); problem != "" {
		return &BadRequestError{"client", problem}
	}
	if problem := names.DimensionProblem(r.Class); r.Class != "" && problem != "" {
		return &BadRequestError{"class", problem}
	}
	if r.LeaseID != "" && !names.IsLeaseID(r.LeaseID) {
		return &BadRequestError{"lease_id", fmt.Sprintf("%.80q is not 32 lower-case hex digits", r.LeaseID)}
	}
	if r.MaxWait < 0 || r.MaxWait > waitMax {
		return &BadRequestError{"max_wait", fmt.Sprintf("%s is out of range 0..%s", r.MaxWait, waitMax)}
	}
	if len(r.Attributes) == 0 && len(r.Amounts) == 0 {
		return checkCharges(r.Charges)
	}
	if err := r.checkDescribed(); err != nil || len(r.Charges) == 0 {
		return err
	}
	return checkCharges(r.Charges)
}

// checkDescribed is the first problem, by name, of what a request says of its work.
func (r *Request) checkDescribed() error {
	switch n, m := len(r.Attributes), len(r.Amounts); {
	case n == 0:
		return &BadRequestError{"amounts", "must be absent where there are no attributes: charges have their own"}
	case n > attributesMax:
		return &BadRequestError{"attributes", fmt.Sprintf("%d, more than %d", n, attributesMax)}
	case m > amountsMax:
		return &BadRequestError{"amounts", fmt.Sprintf("%d, more than %d", m, amountsMax)}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
		if problem := names.DimensionProblem(name); problem != "" {
			return &BadRequestError{"attributes", problem}
		}
		if problem := names.ValueProblem(r.Attributes[name]); problem != "" {
			return &BadRequestError{"attributes." + name, problem}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Amounts)) {
		if problem := names.DimensionProblem(name); problem != "" {
			return &BadRequestError{"amounts", problem}
		}
		if n := r.Amounts[name]; n < 1 || n > block.TokensMax {
			return &BadRequestError{"amounts." + name, fmt.Sprintf("%d is out of range 1..%d", n, int64(block.TokensMax))}
		}
	}
	return nil
}

func checkCharges(charges []Charge) error {
	if n := len(charges); n == 0 || n > chargesMax {
		return &BadRequestError{"charges", fmt.Sprintf("%d is out of range 1..%d", n, chargesMax)}
	}
	for i := range charges {
		c := &charges[i]
		field, problem := c.problem()
		if problem == "" && (c.Amount < 1 || c.Amount > block.TokensMax) {
			field, problem = "amount", fmt.Sprintf("%d is out of range 1..%d", c.Amount, int64(block.TokensMax))
		}
		if problem != "" {
			return &BadRequestError{fmt.Sprintf("charges[%d].%s", i, field), problem}
		}
		for j := range i {
			if o := &charges[j]; o.Limit == c.Limit && o.Key == c.Key && o.Dimension == c.Dimension {
				return &BadRequestError{
					fmt.Sprintf("charges[%d]", i), fmt.Sprintf("the same limit, key and dimension as charges[%d]", j),
				}
			}
		}
	}
	return nil
}

// problem is what is wrong with what a charge names.
func (c *Charge) problem() (field, problem string) {
	if problem := names.LimitProblem(c.Limit); problem != "" {
		return "limit", problem
	}
	if problem := names.KeyProblem(c.Key); problem != "" {
		return "key", problem
	}
	return "dimension", names.DimensionProblem(c.Dimension)
}

func checkUsage(used []Usage) error {
	if n := len(used); n > usagesMax {
		return &BadRequestError{"used", fmt.Sprintf("%d entries, more than %d", n, usagesMax)}
	}
	for i, u := range used {
		if u.Used < 0 || u.Used > block.TokensMax {
			return &BadRequestError{
				fmt.Sprintf("used[%d].used", i), fmt.Sprintf("%d is out of range 0..%d", u.Used, int64(block.TokensMax)),
			}
		}
		if problem := names.DimensionProblem(u.Dimension); problem != "" {
			return &BadRequestError{fmt.Sprintf("used[%d].dimension", i), problem}
		}
	}
	return nil
}
