package limitsfile

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/goccy/go-yaml/ast"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile/callers"
	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

func (d *decoder) document(root ast.Node, file *File) {
	top, req := d.Fields(root, "", "limits", "retry_budgets", "clients"), file.Request
	for i, n := range d.Items(top["limits"], "limits") {
		req.Limits = append(req.Limits, d.limit(n, fmt.Sprintf("limits[%d]", i)))
	}
	for i, n := range d.Items(top["retry_budgets"], "retry_budgets") {
		req.RetryBudgets = append(req.RetryBudgets, d.budget(n, fmt.Sprintf("retry_budgets[%d]", i)))
	}
	file.Clients = callers.Read(callers.Reader{
		Items: d.Items, Fields: d.Fields, Text: d.Text, Size: d.Size, Share: d.Share, Boolean: d.Boolean,
		Pattern: patternProblem, Fail: d.FailNode,
	}, top["clients"], "clients")
}

// limit reads the fields in the order in which they depend on one another,
// whatever their order in the file.
func (d *decoder) limit(n ast.Node, path string) *quorleasev1.Limit {
	f := d.Fields(n, path, "name", "match", "per", "mode", "rate", "concurrency", "quota", "unlimited", "target",
		"burst", "classes", "max_debt", "ramp", "adaptive", "exact", "escrow", "max_open", "lease", "queue",
		"on_quorum_loss", "fallback", "share_reserve", "max_keys", "max_keys_per_client", "overrides", "source")
	l := &quorleasev1.Limit{
		Name:        d.Text(f["name"], path+".name"),
		Match:       d.match(f["match"], path+".match"),
		Per:         d.texts(f["per"], path+".per"),
		Mode:        d.enforcement(f["mode"], path+".mode"),
		Concurrency: d.Size(f["concurrency"], path+".concurrency"),
		Quota:       d.quota(f["quota"], path+".quota"),
		Unlimited:   d.Boolean(f["unlimited"], path+".unlimited"),
		TargetBp:    d.Share(f["target"], path+".target"),
		Ramp:        protoDuration(d.Duration(f["ramp"], path+".ramp")),
		Adaptive:    d.adaptive(f["adaptive"], path+".adaptive"),
		Exact:       d.Boolean(f["exact"], path+".exact"),
		Escrow:      protoDuration(d.Duration(f["escrow"], path+".escrow")),
		MaxKeys:     d.Size(f["max_keys"], path+".max_keys"),
		Lease:       protoDuration(d.Duration(f["lease"], path+".lease")),
		Queue:       d.queue(f["queue"], path+".queue"),
		Source:      d.source(f["source"], path+".source"),

		OnQuorumLoss:    d.mode(f["on_quorum_loss"], path+".on_quorum_loss"),
		FallbackShareBp: d.fallbackShare(f["fallback"], path+".fallback"),
		ShareReserveBp:  *cmp.Or(d.Share(f["share_reserve"], path+".share_reserve"), new(int64)),
	}
	if most := d.Size(f["max_keys_per_client"], path+".max_keys_per_client"); most != nil {
		l.MaxKeysPerClient = *most
	}
	if f["rate"] != nil {
		l.Dimensions = d.rates(f["rate"], path+".rate")
	}
	if f["classes"] != nil {
		d.classes(f["classes"], path+".classes", l)
	}
	for i, n := range d.Items(f["overrides"], path+".overrides") {
		l.Overrides = append(l.Overrides, d.override(n, fmt.Sprintf("%s.overrides[%d]", path, i), l))
	}
	for _, size := range sizes {
		if f[size.name] != nil {
			d.sizes(f[size.name], path+"."+size.name, l, size)
		}
	}
	return l
}

// texts reads a list of texts.
func (d *decoder) texts(n ast.Node, path string) []string {
	var list []string
	for i, item := range d.Items(n, path) {
		list = append(list, d.Text(item, fmt.Sprintf("%s[%d]", path, i)))
	}
	return list
}

func protoDuration(d *time.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(*d)
}

// rates reads the rate of each dimension.
func (d *decoder) rates(n ast.Node, path string) []*quorleasev1.Dimension {
	var list []*quorleasev1.Dimension
	for _, e := range d.Entries(n, path, "a rate for each dimension, like {requests: 1000/min}") {
		if rate := d.rate(e.Value, strict.Join(path, strict.Shortened(e.Key))); rate != nil {
			list = append(list, &quorleasev1.Dimension{Name: e.Key, Rate: rate})
		}
	}
	return list
}

func (d *decoder) rate(n ast.Node, path string) *quorleasev1.Rate {
	if n == nil {
		return nil
	}
	text, ok := d.Plain(n, path, "a rate like 1000/min")
	if !ok {
		return nil
	}
	amount, interval, problem := written.ParseRate(text)
	if problem != "" {
		d.FailAt(strict.Start(n), path, "%s", problem)
		return nil
	}
	return &quorleasev1.Rate{Amount: amount, Interval: durationpb.New(interval)}
}

func (d *decoder) classes(n ast.Node, path string, l *quorleasev1.Limit) {
	for _, e := range d.Entries(n, path, "the classes by name, like {live: {share: 60%}}") {
		at := strict.Join(path, strict.Shortened(e.Key))
		f := d.Fields(e.Value, at, "share", "burst")
		class := &quorleasev1.Class{Name: e.Key, BurstBp: d.Share(f["burst"], at+".burst")}
		if share := d.Share(f["share"], at+".share"); share != nil {
			class.ShareBp = *share
		}
		l.Classes = append(l.Classes, class)
	}
}

func (d *decoder) budget(n ast.Node, path string) *quorleasev1.RetryBudget {
	f := d.Fields(n, path, "name", "match", "max_retries", "max_fraction", "window", "min_requests", "min_retries",
		"retry_after", "scope", "warn", "mode")
	b := &quorleasev1.RetryBudget{
		Name:          d.Text(f["name"], path+".name"),
		MaxFractionBp: d.Share(f["max_fraction"], path+".max_fraction"),
		Window:        protoDuration(d.Duration(f["window"], path+".window")),
		MinRequests:   d.Size(f["min_requests"], path+".min_requests"),
		RetryAfter:    protoDuration(d.Duration(f["retry_after"], path+".retry_after")),
		MinRetries:    d.rate(f["min_retries"], path+".min_retries"),
		Scope:         d.scope(f["scope"], path+".scope"),
		Mode:          d.enforcement(f["mode"], path+".mode"),
	}
	if f["warn"] != nil {
		warn := d.Fields(f["warn"], path+".warn", "fraction", "for")
		b.WarnFractionBp = d.Share(warn["fraction"], path+".warn.fraction")
		b.WarnFor = protoDuration(d.Duration(warn["for"], path+".warn.for"))
	}
	if f["match"] != nil {
		match := d.Fields(f["match"], path+".match", "client")
		b.Client = d.Text(match["client"], path+".match.client")
	}
	if size := d.Size(f["max_retries"], path+".max_retries"); size != nil {
		// What is too much stays too much; resolving names the bound.
		retries := uint32(min(*size, math.MaxUint32))
		b.MaxRetries = &retries
	}
	return b
}
