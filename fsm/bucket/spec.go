package bucket

import (
	"fmt"
	"time"
)

// Bounds of a Spec.
const (
	// MaxTokens is the largest amount, burst or debt. Beyond it a JSON number
	// would no longer be exact.
	MaxTokens = 1 << 53
	// Whole is 100 % in the unit of shares and targets, hundredths of a percent.
	Whole = 10_000
	// MaxClasses bounds the classes of a shape, so that a denial can be searched
	// for on the stack and a leap has a bound. People name three or four.
	MaxClasses = 16
)

// Spec is what an operator configures for one dimension of a limit.
type Spec struct {
	// Amount is the rate in tokens an interval, before Target. 0 to MaxTokens;
	// zero means that nothing is ever refilled.
	Amount int64
	// Interval is at least one nanosecond.
	Interval time.Duration
	// Target is the part of the rate that is handed out, in hundredths of a
	// percent, 1 to Whole.
	Target int64
	// Burst is the most tokens the bucket holds, 0 to MaxTokens, and at least 1
	// where Amount is positive.
	Burst int64
	// MaxDebt is the most tokens of debt each class may have, 0 to MaxTokens.
	MaxDebt int64
	// Classes are in the order in which they borrow and in which spare refill
	// pays debts. None is the case of one unnamed class with share 0 and
	// sub-burst 0, which gives a debt its place.
	Classes []ClassSpec
}

// ClassSpec is what an operator configures for one class.
type ClassSpec struct {
	// Share is the guaranteed part of the rate after target, in hundredths of a
	// percent. The shares of all classes sum to at most Whole.
	Share int64
	// SubBurst is the size of the class's own sub-bucket in whole tokens. Whole,
	// because fractions of tokens in several sub-buckets can refuse everybody for
	// ever (T21). All together are at most Burst.
	SubBurst int64
}

// SpecError says which field of a Spec can't be used, and why.
type SpecError struct {
	// Field is the path of the field: "burst", "classes[1].share".
	Field string
	// Problem has the value and the bound.
	Problem string
}

// Error is one line with the field, its value and its bound.
func (e *SpecError) Error() string { return e.Field + " " + e.Problem }

// wrong is a SpecError as an error.
func wrong(field, format string, values ...any) error {
	return &SpecError{Field: field, Problem: fmt.Sprintf(format, values...)}
}

func between(field string, value, least, most int64) error {
	if value >= least && value <= most {
		return nil
	}
	return wrong(field, "%d: must be from %d to %d", value, least, most)
}

// check refuses what is out of range. What is in range and still can't be
// counted exactly is refused by measure.
func (spec *Spec) check() error {
	if err := between("amount", spec.Amount, 0, MaxTokens); err != nil {
		return err
	}
	if spec.Interval < 1 {
		return wrong("interval", "%v: must be positive", spec.Interval)
	}
	if err := between("target", spec.Target, 1, Whole); err != nil {
		return err
	}
	if err := between("burst", spec.Burst, min(spec.Amount, 1), MaxTokens); err != nil {
		return err
	}
	if err := between("max_debt", spec.MaxDebt, 0, MaxTokens); err != nil {
		return err
	}
	if len(spec.Classes) > MaxClasses {
		return wrong("classes", "%d: must be at most %d", len(spec.Classes), MaxClasses)
	}
	if err := spec.checkShares(); err != nil {
		return err
	}
	return spec.checkSubBursts()
}

func (spec *Spec) checkShares() error {
	shares := int64(0)
	for i, c := range spec.Classes {
		field := fmt.Sprintf("classes[%d].share", i)
		if err := between(field, c.Share, 0, Whole); err != nil {
			return err
		}
		if shares += c.Share; shares > Whole {
			return wrong(field, "%d: with those before it %d, which is more than %d", c.Share, shares, Whole)
		}
	}
	return nil
}

// checkSubBursts also makes sure that every class can be served at all: what
// the others keep for themselves must leave it one token (T19).
func (spec *Spec) checkSubBursts() error {
	kept := int64(0)
	for i, c := range spec.Classes {
		field := fmt.Sprintf("classes[%d].burst", i)
		if err := between(field, c.SubBurst, 0, MaxTokens); err != nil {
			return err
		}
		if kept += c.SubBurst; kept > spec.Burst {
			return wrong(field, "%d: with those before it %d, which is more than the burst of %d",
				c.SubBurst, kept, spec.Burst)
		}
		// Such a sub-bucket would be drained once and never refilled, and its
		// bucket could never be dropped.
		if spec.Amount > 0 && c.Share == 0 && c.SubBurst > 0 {
			return wrong(field, "%d: must be 0 where the share is 0", c.SubBurst)
		}
	}
	for i, c := range spec.Classes {
		if others := kept - c.SubBurst; spec.Burst > 0 && spec.Burst-others < 1 {
			return wrong(fmt.Sprintf("classes[%d]", i),
				"has nothing to take: the other classes keep %d of the burst of %d for themselves",
				others, spec.Burst)
		}
	}
	return nil
}
