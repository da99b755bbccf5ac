package lineage

import (
	"errors"
	"fmt"
	"strings"
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
	shapes := make([]*bucket.Shape, 0, len(limit.GetDimensions()))
	seen := make(map[string]bool)
	for i, spec := range limit.GetDimensions() {
		field := fmt.Sprintf("dimensions[%d]", i)
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
		shape, err := shapeOf(spec, limit.GetClasses(), limit.GetTarget())
		if err != nil {
			return nil, &FieldError{Field: field + "." + err.Field, Problem: err.Problem}
		}
		shapes = append(shapes, shape)
	}
	return shapes, nil
}

// check looks at what a limit has beside its dimensions.
func check(limit *logv1.Limit) error {
	switch dimensions := len(limit.GetDimensions()); {
	case !IsName(limit.GetName()):
		return bad("name", "%q: must be %s", clip(limit.GetName()), namePattern)
	case limit.GetUnlimited() && dimensions > 0:
		return bad("dimensions", "%d: must be none where the limit is unlimited", dimensions)
	case !limit.GetUnlimited() && dimensions == 0:
		return bad("dimensions", "none: a limit counts something, or is unlimited")
	case dimensions > maxDimensions:
		return bad("dimensions", "%d: must be at most %d", dimensions, maxDimensions)
	case len(limit.GetClasses()) > bucket.MaxClasses:
		return bad("classes", "%d: must be at most %d", len(limit.GetClasses()), bucket.MaxClasses)
	case limit.GetLease() < minLease || limit.GetLease() > maxLease:
		return bad("lease", "%v: must be from %v to %v",
			time.Duration(limit.GetLease()), time.Duration(minLease), time.Duration(maxLease))
	case limit.GetMaxKeys() < 1:
		return bad("max_keys", "%d: must be at least 1", limit.GetMaxKeys())
	case limit.GetTarget() < 1 || limit.GetTarget() > bucket.Whole:
		return bad("target", "%d: must be from 1 to %d", limit.GetTarget(), bucket.Whole)
	case logv1.OnQuorumLoss_name[int32(limit.GetOnQuorumLoss())] == "":
		return bad("on_quorum_loss", "%d: is no mode", limit.GetOnQuorumLoss())
	case limit.GetFallbackShare() < 0 || limit.GetFallbackShare() > bucket.Whole:
		return bad("fallback_share", "%d: must be from 0 to %d", limit.GetFallbackShare(), bucket.Whole)
	}
	seen := make(map[string]bool)
	for i, class := range limit.GetClasses() {
		field := fmt.Sprintf("classes[%d]", i)
		switch {
		case !IsWord(class.GetName()):
			return bad(field+".name", "%q: must be %s", clip(class.GetName()), wordPattern)
		case seen[class.GetName()]:
			return bad(field+".name", "%q: is there twice", class.GetName())
		case class.GetBurst() < 0 || class.GetBurst() > bucket.Whole:
			return bad(field+".burst", "%d: must be from 0 to %d", class.GetBurst(), bucket.Whole)
		}
		seen[class.GetName()] = true
	}
	return nil
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

// What names may look like, as error messages say it.
const (
	namePattern = "[a-z0-9][a-z0-9_.-]{0,62}"
	wordPattern = "[a-z][a-z0-9_]{0,62}"
)

// IsName says whether a limit or a retry budget may be called so. There is no
// slash in it, so that the first slash splits limit and key.
func IsName(name string) bool {
	if len(name) < 1 || len(name) > maxName || !lower(name[0]) && !digit(name[0]) {
		return false
	}
	for i := 1; i < len(name); i++ {
		if c := name[i]; !lower(c) && !digit(c) && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// IsWord says whether a dimension or a class may be called so.
func IsWord(name string) bool {
	if len(name) < 1 || len(name) > maxName || !lower(name[0]) {
		return false
	}
	for i := 1; i < len(name); i++ {
		if c := name[i]; !lower(c) && !digit(c) && c != '_' {
			return false
		}
	}
	return true
}

func lower(c byte) bool { return c >= 'a' && c <= 'z' }
func digit(c byte) bool { return c >= '0' && c <= '9' }

// clip bounds what an error message repeats.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
