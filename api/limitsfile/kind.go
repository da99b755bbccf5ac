package limitsfile

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// match reads which attributes must fit.
func (d *decoder) match(n ast.Node, path string) map[string]string {
	if n == nil {
		return nil
	}
	var all map[string]string
	for _, e := range d.Entries(n, path, `the attributes that must fit, like {tenant: "*"}`) {
		if all == nil {
			all = map[string]string{}
		}
		all[e.Key] = d.Text(e.Value, strict.Join(path, strict.Shortened(e.Key)))
	}
	return all
}

// amounts reads tokens by dimension.
func (d *decoder) amounts(n ast.Node, path string) map[string]int64 {
	if n == nil {
		return nil
	}
	var all map[string]int64
	for _, e := range d.Entries(n, path, "numbers by name, like {input_tokens: 50_000_000}") {
		if n := d.Size(e.Value, strict.Join(path, strict.Shortened(e.Key))); n != nil {
			if all == nil {
				all = map[string]int64{}
			}
			all[e.Key] = *n
		}
	}
	return all
}

func (d *decoder) quota(n ast.Node, path string) *quorleasev1.Quota {
	if n == nil {
		return nil
	}
	f := d.Fields(n, path, "per", "timezone", "amounts", "warn")
	q := &quorleasev1.Quota{
		Timezone: d.Text(f["timezone"], path+".timezone"),
		Amounts:  d.amounts(f["amounts"], path+".amounts"),
	}
	if f["per"] != nil {
		q.Period, _ = strict.Value(d.Reader, f["per"], path+".per", "hour, day or month", periods.Parse)
	}
	for i, part := range d.Items(f["warn"], path+".warn") {
		if share := d.Share(part, fmt.Sprintf("%s.warn[%d]", path, i)); share != nil {
			q.WarnBp = append(q.WarnBp, *share)
		}
	}
	return q
}

func (d *decoder) adaptive(n ast.Node, path string) *quorleasev1.Adaptive {
	if n == nil {
		return nil
	}
	f := d.Fields(n, path, "decrease", "step", "interval", "floor")
	return &quorleasev1.Adaptive{
		DecreaseBp: d.Share(f["decrease"], path+".decrease"),
		StepBp:     d.Share(f["step"], path+".step"),
		Interval:   protoDuration(d.Duration(f["interval"], path+".interval")),
		FloorBp:    d.Share(f["floor"], path+".floor"),
	}
}

func (d *decoder) queue(n ast.Node, path string) *quorleasev1.Queue {
	if n == nil {
		return nil
	}
	f := d.Fields(n, path, "max", "max_tokens", "max_wait", "weights")
	q := &quorleasev1.Queue{
		Max:     d.Size(f["max"], path+".max"),
		MaxWait: protoDuration(d.Duration(f["max_wait"], path+".max_wait")),
		Weights: d.amounts(f["weights"], path+".weights"),
	}
	if most := d.Size(f["max_tokens"], path+".max_tokens"); most != nil {
		q.MaxTokens = *most
	}
	return q
}

func (d *decoder) source(n ast.Node, path string) *quorleasev1.Reference {
	if n == nil {
		return nil
	}
	f := d.Fields(n, path, "url", "verified_at")
	return &quorleasev1.Reference{
		Url: d.Text(f["url"], path+".url"), VerifiedAt: d.Text(f["verified_at"], path+".verified_at"),
	}
}

// override reads the numbers of one key or prefix: those of a rate limit like its
// own, of a concurrency limit how many, of a quota the amounts.
func (d *decoder) override(n ast.Node, path string, l *quorleasev1.Limit) *quorleasev1.Override {
	known := []string{"key", "prefix", "rate", "burst", "max_debt", "max_open"}
	burst := sizes[0]
	byDimension := sizes
	switch {
	case l.Concurrency != nil:
		known = append(known[:2], "concurrency")
	case l.GetQuota() != nil:
		known = append(known[:2], "amounts")
		byDimension = []size{{"amounts", 0, burst.field}}
	}
	f := d.Fields(n, path, known...)
	o := &quorleasev1.Override{Key: d.Text(f["key"], path+".key"), Prefix: d.Text(f["prefix"], path+".prefix")}
	if f["rate"] != nil {
		o.Dimensions = d.rates(f["rate"], path+".rate")
	}
	set := func(name string, tokens *int64, field func(*quorleasev1.Dimension) **int64) {
		if tokens == nil {
			return
		}
		dimension := dimensionOf(o.GetDimensions(), name)
		if dimension == nil {
			dimension = &quorleasev1.Dimension{Name: name}
			o.Dimensions = append(o.Dimensions, dimension)
		}
		*field(dimension) = tokens
	}
	set(slotsName, d.Size(f["concurrency"], path+".concurrency"), burst.field)
	for _, s := range byDimension {
		if f[s.name] == nil {
			continue
		}
		at := path + "." + s.name
		for _, e := range d.Entries(f[s.name], at, "tokens by dimension, like {requests: 200}") {
			set(e.Key, d.Size(e.Value, strict.Join(at, strict.Shortened(e.Key))), s.field)
		}
	}
	return o
}
