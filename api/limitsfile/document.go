package limitsfile

import (
	"fmt"
	"math"
	"time"

	"github.com/goccy/go-yaml/ast"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

func (d *decoder) document(root ast.Node, req *quorleasev1.LimitsApplyRequest) {
	top := d.fields(root, "", "limits", "retry_budgets")
	for i, n := range d.items(top["limits"], "limits") {
		req.Limits = append(req.Limits, d.limit(n, fmt.Sprintf("limits[%d]", i)))
	}
	for i, n := range d.items(top["retry_budgets"], "retry_budgets") {
		req.RetryBudgets = append(req.RetryBudgets, d.budget(n, fmt.Sprintf("retry_budgets[%d]", i)))
	}
}

// limit reads the fields in the order in which they depend on one another,
// whatever their order in the file.
func (d *decoder) limit(n ast.Node, path string) *quorleasev1.Limit {
	f := d.fields(n, path, "name", "per", "rate", "unlimited", "target", "burst", "classes",
		"max_debt", "max_open", "exact", "lease", "max_keys", "on_quorum_loss", "fallback")
	l := &quorleasev1.Limit{
		Name:      d.str(f["name"], path+".name"),
		Unlimited: d.boolean(f["unlimited"], path+".unlimited"),
		TargetBp:  d.share(f["target"], path+".target"),
		Exact:     d.boolean(f["exact"], path+".exact"),
		MaxKeys:   d.size(f["max_keys"], path+".max_keys"),
		Lease:     protoDuration(d.duration(f["lease"], path+".lease")),

		OnQuorumLoss:    d.mode(f["on_quorum_loss"], path+".on_quorum_loss"),
		FallbackShareBp: d.fallbackShare(f["fallback"], path+".fallback"),
	}
	for i, attribute := range d.items(f["per"], path+".per") {
		l.Per = append(l.Per, d.str(attribute, fmt.Sprintf("%s.per[%d]", path, i)))
	}
	if f["rate"] != nil {
		d.rates(f["rate"], path+".rate", l)
	}
	if f["classes"] != nil {
		d.classes(f["classes"], path+".classes", l)
	}
	for _, size := range []struct {
		name  string
		least int64
		set   func(*quorleasev1.Dimension, *int64)
	}{
		{"burst", 1, func(to *quorleasev1.Dimension, n *int64) { to.Burst = n }},
		{"max_debt", 0, func(to *quorleasev1.Dimension, n *int64) { to.MaxDebt = n }},
		{"max_open", 0, func(to *quorleasev1.Dimension, n *int64) { to.MaxOpen = n }},
	} {
		if f[size.name] != nil {
			d.sizes(f[size.name], path+"."+size.name, l, size.least, size.set)
		}
	}
	return l
}

func protoDuration(d *time.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(*d)
}

func (d *decoder) rates(n ast.Node, path string, l *quorleasev1.Limit) {
	for _, e := range d.entries(n, path, "a rate for each dimension, like {requests: 1000/min}") {
		at := join(path, shortened(e.key))
		text, ok := d.plain(e.value, at, "a rate like 1000/min")
		if !ok {
			continue
		}
		amount, interval, problem := parseRate(text)
		if problem != "" {
			d.fail(start(e.value), at, "%s", problem)
			continue
		}
		l.Dimensions = append(l.Dimensions, &quorleasev1.Dimension{
			Name: e.key, Rate: &quorleasev1.Rate{Amount: amount, Interval: durationpb.New(interval)},
		})
	}
}

func (d *decoder) classes(n ast.Node, path string, l *quorleasev1.Limit) {
	for _, e := range d.entries(n, path, "the classes by name, like {live: {share: 60%}}") {
		at := join(path, shortened(e.key))
		f := d.fields(e.value, at, "share", "burst")
		class := &quorleasev1.Class{Name: e.key, BurstBp: d.share(f["burst"], at+".burst")}
		if share := d.share(f["share"], at+".share"); share != nil {
			class.ShareBp = *share
		}
		l.Classes = append(l.Classes, class)
	}
}

// sizes reads a size of every dimension: one duration, which stands for what the
// rate after target hands out in it, or tokens by dimension.
func (d *decoder) sizes(
	n ast.Node, path string, l *quorleasev1.Limit, least int64, set func(*quorleasev1.Dimension, *int64),
) {
	const want = "a duration of the rate, like 10s, or tokens by dimension, like {requests: 200}"
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		for _, e := range d.entries(n, path, want) {
			at := join(path, shortened(e.key))
			size := d.size(e.value, at)
			dimension := dimensionOf(l, e.key)
			if dimension == nil {
				d.fail(e.at, at, "rate has no such dimension")
				continue
			}
			set(dimension, size)
		}
		return
	}
	long, ok := value(d, n, path, want, parseDuration)
	if !ok {
		return
	}
	if long == 0 && least > 0 {
		d.fail(start(n), path, "%v: must be positive", long)
		return
	}
	target := int64(bucket.Whole)
	if l.TargetBp != nil {
		target = l.GetTargetBp()
	}
	for _, dimension := range l.GetDimensions() {
		whole := rate{
			amount: dimension.GetRate().GetAmount(), interval: dimension.GetRate().GetInterval().AsDuration(),
			target: target,
		}
		tokens := whole.tokensIn(long)
		if least > 0 {
			tokens = whole.burstIn(long)
		}
		set(dimension, &tokens)
	}
}

func dimensionOf(l *quorleasev1.Limit, name string) *quorleasev1.Dimension {
	for _, dimension := range l.GetDimensions() {
		if dimension.GetName() == name {
			return dimension
		}
	}
	return nil
}

func (d *decoder) budget(n ast.Node, path string) *quorleasev1.RetryBudget {
	f := d.fields(n, path, "name", "match", "max_retries", "max_fraction", "window", "min_requests", "retry_after")
	b := &quorleasev1.RetryBudget{
		Name:          d.str(f["name"], path+".name"),
		MaxFractionBp: d.share(f["max_fraction"], path+".max_fraction"),
		Window:        protoDuration(d.duration(f["window"], path+".window")),
		MinRequests:   d.size(f["min_requests"], path+".min_requests"),
		RetryAfter:    protoDuration(d.duration(f["retry_after"], path+".retry_after")),
	}
	if f["match"] != nil {
		match := d.fields(f["match"], path+".match", "client")
		b.Client = d.str(match["client"], path+".match.client")
	}
	if size := d.size(f["max_retries"], path+".max_retries"); size != nil {
		// What is too much stays too much; resolving names the bound.
		retries := uint32(min(*size, math.MaxUint32))
		b.MaxRetries = &retries
	}
	return b
}
