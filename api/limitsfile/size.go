package limitsfile

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// size is a size of every dimension.
type size struct {
	name  string
	least int64
	field func(*quorleasev1.Dimension) **int64
}

// sizes are in the order of the file.
var sizes = []size{
	{"burst", 1, func(d *quorleasev1.Dimension) **int64 { return &d.Burst }},
	{"max_debt", 0, func(d *quorleasev1.Dimension) **int64 { return &d.MaxDebt }},
	{"max_open", 0, func(d *quorleasev1.Dimension) **int64 { return &d.MaxOpen }},
}

const sizeForm = "a duration of the rate, like 10s, or tokens by dimension, like {requests: 200}"

// sizes reads a size of every dimension: one duration, which stands for what the
// rate after target hands out in it, or tokens by dimension. A duration is also
// that of the overrides, each of its own rate.
func (d *decoder) sizes(n ast.Node, path string, l *quorleasev1.Limit, s size) {
	if strict.IsMapping(n) {
		for _, e := range d.Entries(n, path, sizeForm) {
			at := strict.Join(path, strict.Shortened(e.Key))
			tokens := d.Size(e.Value, at)
			dimension := dimensionOf(l.GetDimensions(), e.Key)
			if dimension == nil {
				d.FailAt(e.At, at, "rate has no such dimension")
				continue
			}
			*s.field(dimension) = tokens
		}
		return
	}
	long, ok := strict.Value(d.Reader, n, path, sizeForm, written.ParseDuration)
	if !ok {
		return
	}
	if long == 0 && s.least > 0 {
		d.FailAt(strict.Start(n), path, "%v: must be positive", long)
		return
	}
	target := int64(bucket.Whole)
	if l.TargetBp != nil {
		target = l.GetTargetBp()
	}
	for _, dimension := range l.GetDimensions() {
		*s.field(dimension) = s.of(dimension.GetRate(), target, long)
	}
	for _, o := range l.GetOverrides() {
		for _, dimension := range o.GetDimensions() {
			if field := s.field(dimension); *field == nil && dimension.GetRate() != nil {
				*field = s.of(dimension.GetRate(), target, long)
			}
		}
	}
}

// of is the size in tokens where it was given as a duration.
func (s size) of(r *quorleasev1.Rate, target int64, long time.Duration) *int64 {
	whole := written.Rate{Amount: r.GetAmount(), Interval: r.GetInterval().AsDuration(), Target: target}
	tokens := whole.TokensIn(long)
	if s.least > 0 {
		tokens = whole.BurstIn(long)
	}
	return &tokens
}

func dimensionOf(list []*quorleasev1.Dimension, name string) *quorleasev1.Dimension {
	for _, dimension := range list {
		if dimension.GetName() == name {
			return dimension
		}
	}
	return nil
}
