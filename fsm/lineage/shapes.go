package lineage

import (
	"errors"
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Bounds of a limit.
const (
	maxDimensions = 16
	// maxRemembered bounds the dimensions of a limit together with the removed
	// ones that are remembered.
	maxRemembered = 64
	maxName       = 63
	// A lease shorter than a millisecond is over before an answer arrives; one
	// longer than a day outlives the change that its holder should notice.
	minLease = int64(time.Millisecond)
	maxLease = int64(24 * time.Hour)
)

// FieldError says which field of a limit can't be used, and why.
type FieldError struct {
	// Field is the path of the field within the limit: "dimensions[0].burst".
	Field string
	// Problem has the value and the bound.
	Problem string
}

// Error is one line.
func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

func bad(field, format string, values ...any) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf(format, values...)}
}

// Shapes checks a limit and works out the arithmetic of its dimensions. The error
// is a *FieldError.
func Shapes(limit *logv1.Limit) ([]*bucket.Shape, error) {
	if err := check(limit); err != nil {
		return nil, err
	}
	shapes, err := shapesOf(limit.GetDimensions(), limit, "dimensions")
	if err != nil {
		return nil, err
	}
	for i, o := range limit.GetOverrides() {
		if _, err := shapesOf(o.GetDimensions(), limit, fmt.Sprintf("overrides[%d].dimensions", i)); err != nil {
			return nil, err
		}
	}
	return shapes, nil
}

// shapesOf works out the arithmetic of dimensions, at a path, that have the classes
// and the target of a limit.
func shapesOf(dimensions []*logv1.Dimension, limit *logv1.Limit, path string) ([]*bucket.Shape, error) {
	shapes := make([]*bucket.Shape, 0, len(dimensions))
	seen := make(map[string]bool)
	for i, spec := range dimensions {
		field := fmt.Sprintf("%s[%d]", path, i)
		if !IsWord(spec.GetName()) {
			return nil, bad(field+".name", "%q: must be %s", clip(spec.GetName()), wordPattern)
		}
		if seen[spec.GetName()] {
			return nil, bad(field+".name", "%q: is there twice", spec.GetName())
		}
		seen[spec.GetName()] = true
		if open := spec.GetMaxOpen(); open < 0 || open > bucket.MaxTokens {
			return nil, bad(field+".max_open", "%d: must be from 0 to %d", open, int64(bucket.MaxTokens))
		}
		shape, err := shapeOf(spec, limit.GetClasses(), HandedOut(limit))
		if err != nil {
			return nil, &FieldError{Field: field + "." + err.Field, Problem: err.Problem}
		}
		shapes = append(shapes, shape)
	}
	return shapes, nil
}

func shapeOf(spec *logv1.Dimension, classes []*logv1.Class, target int64) (*bucket.Shape, *bucket.SpecError) {
	numbers := bucket.Spec{
		Amount: spec.GetAmount(), Interval: time.Duration(spec.GetInterval()), Target: target,
		Burst: spec.GetBurst(), MaxDebt: spec.GetMaxDebt(),
	}
	for _, class := range classes {
		numbers.Classes = append(numbers.Classes, bucket.ClassSpec{
			Share: class.GetShare(), SubBurst: part(spec.GetBurst(), class.GetBurst()),
		})
	}
	shape, err := bucket.NewShape(numbers)
	if err == nil {
		return shape, nil
	}
	var wrong *bucket.SpecError
	if !errors.As(err, &wrong) {
		wrong = &bucket.SpecError{Field: "rate", Problem: err.Error()}
	}
	return nil, wrong
}

// part is hundredths of a percent of tokens, rounded down, without overflow.
func part(tokens, hundredths int64) int64 {
	return tokens/bucket.Whole*hundredths + tokens%bucket.Whole*hundredths/bucket.Whole
}
