package file

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/gateway/fallback"
	"github.com/quorlease/quorlease/client/names"
)

// fallbacksMax is how many deployments may stand in for one.
const fallbacksMax = 8

// model reads what a deployment costs, how soon it answers, and what stands in for it.
func (r *reader) model(fields map[string]ast.Node, path string) (m fallback.Model) {
	if n := fields["price"]; n != nil {
		prices := r.Fields(n, path+".price", "input", "output")
		m.Price = &fallback.Price{
			Input:  r.number(prices["input"], path+".price.input", 0, fallback.PriceMax),
			Output: r.number(prices["output"], path+".price.output", 0, fallback.PriceMax),
		}
		if strict.IsMapping(n) && prices["input"] == nil && prices["output"] == nil {
			r.Fail(path+".price", "says nothing: {input: 2_500_000, output: 10_000_000}, for example, for a million tokens")
		}
	}
	if latency := r.Duration(fields["latency"], path+".latency"); latency != nil {
		m.Latency = *latency
	}
	items := r.Items(fields["fallbacks"], path+".fallbacks")
	if len(items) > fallbacksMax {
		r.FailNode(fields["fallbacks"], path+".fallbacks", "%d, more than %d", len(items), fallbacksMax)
		return m
	}
	for i, item := range items {
		at := fmt.Sprintf("%s.fallbacks[%d]", path, i)
		target := r.Fields(item, at, "deployment", "model")
		if !strict.IsMapping(item) {
			continue
		}
		if target["deployment"] == nil {
			r.Fail(at+".deployment", "missing: the name of one of deployments")
			continue
		}
		m.To = append(m.To, fallback.Target{
			Deployment: r.text(target["deployment"], at+".deployment", names.LimitProblem),
			Model:      r.text(target["model"], at+".model", modelProblem),
		})
	}
	return m
}

// joined holds what deployments say of one another together.
func (r *reader) joined(f *File) {
	if r.Err() == nil {
		f.Gateway.CheckFallbacks(func(at, format string, args ...any) { r.Fail(at, format, args...) })
	}
}

// bound reads how much of a day's money may go to fallbacks.
func (r *reader) bound(n ast.Node, f *File) {
	if n == nil {
		return
	}
	fields := r.Fields(n, "fallback", "share", "free")
	b := &f.Gateway.Fallback
	if share := r.Share(fields["share"], "fallback.share"); share != nil {
		b.ShareBP = int(*share)
		if *share == 0 {
			b.ShareBP = -1
		}
	}
	b.Free = r.number(fields["free"], "fallback.free", 0, countMax)
}

// manner reads how a class goes about refusals.
func (r *reader) manner(fields map[string]ast.Node, at string, class *gateway.Class) {
	class.Manner.Mode = chosen(r, fields["mode"], at+".mode", []string{"jitter", "fixed", "immediate", "defer"},
		fallback.Jitter, fallback.Fixed, fallback.Immediate, fallback.Defer)
	if delay := r.Duration(fields["delay"], at+".delay"); delay != nil {
		class.Manner.Delay = *delay
	}
	if err := class.Manner.Validate(); err != nil {
		field, _, _ := strings.Cut(err.Error(), " ")
		r.Fail(at+"."+field, "%v", err)
	}
	if class.Manner.Mode != fallback.Defer {
		return
	}
	if fields["closed"] != nil && class.Closed != circuit.Defer {
		r.FailNode(fields["closed"], at+".closed", "shed is not what mode defer does")
	}
	class.Closed = circuit.Defer
}
