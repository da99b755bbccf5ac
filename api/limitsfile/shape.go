package limitsfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/api/limitsfile/written"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Spec is the arithmetic that the state machine will do for one dimension of a
// limit.
func Spec(l *logv1.Limit, d *logv1.Dimension) bucket.Spec {
	spec := bucket.Spec{
		Amount: d.GetAmount(), Interval: time.Duration(d.GetInterval()), Target: l.GetTarget(),
		Burst: d.GetBurst(), MaxDebt: d.GetMaxDebt(),
	}
	for _, c := range l.GetClasses() {
		// Burst is at most 2^53 and a share at most 10^4, which is less than 2^14:
		// the product can be more than 63 bits, the quotient can't.
		whole, rest := d.GetBurst()/bucket.Whole, d.GetBurst()%bucket.Whole
		spec.Classes = append(spec.Classes, bucket.ClassSpec{
			Share: c.GetShare(), SubBurst: whole*c.GetBurst() + rest*c.GetBurst()/bucket.Whole,
		})
	}
	return spec
}

// shape refuses a dimension that can't be counted exactly, or whose classes
// leave one of them nothing.
func (r *resolver) shape(at string, l *logv1.Limit, d *logv1.Dimension) {
	_, err := bucket.NewShape(Spec(l, d))
	var wrong *bucket.SpecError
	switch {
	case err == nil:
	case errors.As(err, &wrong):
		field := publicField(at, wrong.Field)
		// What is wrong with the classes is wrong in every dimension; once will do.
		if !slices.ContainsFunc(r.errs, func(e *FieldError) bool { return e.Field == field }) {
			r.fail(field, "dimension %s: %s%s", d.GetName(), asWritten(l, wrong.Field), wrong.Problem)
		}
	default:
		r.fail(strings.TrimSuffix(at, "."), "%v", err)
	}
}

// asWritten is the part of the burst that a class was given, where its tokens
// are what is wrong.
func asWritten(l *logv1.Limit, field string) string {
	for i, c := range l.GetClasses() {
		if field == fmt.Sprintf("classes[%d].burst", i) {
			return written.FormatShare(c.GetBurst()) + " is "
		}
	}
	return ""
}

// publicField is what the public protocol calls a field of a Spec.
func publicField(at, field string) string {
	switch field {
	case "amount", "interval":
		return at + "rate." + field
	case "burst", "max_debt":
		return at + field
	case "target":
		return "target_bp"
	}
	field = strings.Replace(field, "].share", "].share_bp", 1)
	return strings.Replace(field, "].burst", "].burst_bp", 1)
}
