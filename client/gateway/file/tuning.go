package file

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/quorlease/quorlease/api/limitsfile/strict"
	"github.com/quorlease/quorlease/api/limitsfile/written"
	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/circuit"
	"github.com/quorlease/quorlease/client/names"
	"github.com/quorlease/quorlease/fsm/retry"
)

const (
	classesMax = 64
	waitMax    = time.Hour
	triesMax   = 10
	bodyMin    = 1 << 10
	bodyMax    = 1 << 30
	// The defaults of what others may not be less than.
	bodyDefault   = 32 << 20
	bodiesDefault = 256 << 20
	openDefault   = 30 * time.Second
	// markDefault is told.ProberConfig.Mark.
	markDefault = 5 * time.Second

	heldMax    = 1 << 40
	markersMax = 32
)

func (r *reader) classes(n ast.Node, f *File) {
	items := r.Items(n, "classes")
	if len(items) > classesMax {
		r.FailNode(n, "classes", "%d, more than %d", len(items), classesMax)
		return
	}
	first := map[string]int{}
	for i, item := range items {
		at := fmt.Sprintf("classes[%d]", i)
		fields := r.Fields(item, at, "name", "max_wait", "closed", "mode", "delay")
		if !strict.IsMapping(item) {
			continue
		}
		class := gateway.Class{
			Name:    r.Text(fields["name"], at+".name"),
			MaxWait: r.wait(fields["max_wait"], at+".max_wait"),
			Closed: chosen(r, fields["closed"], at+".closed", []string{"shed", "defer"},
				circuit.Shed, circuit.Defer),
		}
		r.manner(fields, at, &class)
		if problem := names.DimensionProblem(class.Name); problem != "" {
			r.FailNode(fields["name"], at+".name", "%s", problem)
		}
		if before, twice := first[class.Name]; twice {
			r.Fail(at+".name", "%s is used twice, first by classes[%d]", written.Quote(class.Name), before)
		}
		first[class.Name] = i
		f.Gateway.Classes = append(f.Gateway.Classes, class)
	}
}

// wait reads for how long a class waits; none and 0s are -1, which is not at all.
func (r *reader) wait(n ast.Node, path string) time.Duration {
	if n == nil {
		return 0
	}
	wait, ok := strict.Value(r.Reader, n, path, "a duration or none", orNone(written.ParseDuration))
	switch {
	case ok && wait == 0:
		return -1
	case wait > waitMax:
		r.FailNode(n, path, "%s is out of range 0s..%s", written.FormatDuration(wait), written.FormatDuration(waitMax))
	}
	return wait
}

// bounds reads what stands at the top of the file and is one number.
func (r *reader) bounds(top map[string]ast.Node, f *File) {
	g := &f.Gateway
	g.Tries = int(r.number(top["tries"], "tries", 1, triesMax))
	r.tokens(top["retry_tokens"], f)
	g.BodyMax = r.bytes(top["body_max"], "body_max", bodyMin, bodyMax)
	g.BodiesMax = r.bytes(top["bodies_max"], "bodies_max", bodyMin, heldMax)
	if body := cmp.Or(g.BodyMax, int64(bodyDefault)); g.BodiesMax != 0 && g.BodiesMax < body {
		r.Fail("bodies_max", "%s is less than body_max, %s", formatBytes(g.BodiesMax), formatBytes(body))
	}
	g.BodiesClientMax = r.bytes(top["bodies_client_max"], "bodies_client_max", bodyMin, heldMax)
	if share := g.BodiesClientMax; share != 0 {
		body := cmp.Or(g.BodyMax, int64(bodyDefault))
		all := cmp.Or(g.BodiesMax, max(body, int64(bodiesDefault)))
		switch {
		case share < body:
			r.Fail("bodies_client_max", "%s is less than body_max, %s", formatBytes(share), formatBytes(body))
		case share > all:
			r.Fail("bodies_client_max", "%s is more than bodies_max, %s", formatBytes(share), formatBytes(all))
		}
	}
	g.NoSharing = top["coalesce"] != nil && !r.Boolean(top["coalesce"], "coalesce")
	g.Shared.Bytes = r.bytes(top["coalesced_max"], "coalesced_max", 1<<20, heldMax)
	if lines := r.secretFile(top["hash_key_file"], "hash_key_file"); len(lines) > 0 {
		if key := strings.Join(lines, "\n"); len(key) < canon.KeyMin {
			r.Fail("hash_key_file", "the key has %d bytes, at least %d", len(key), canon.KeyMin)
		} else {
			g.Hashes.Key = []byte(key)
		}
	}
}

// tokens reads the balance that pays for further tries.
func (r *reader) tokens(n ast.Node, f *File) {
	if n == nil {
		return
	}
	const at = "retry_tokens"
	fields := r.Fields(n, at, "cap", "cost", "refund", "free")
	rule := retry.TokenRule{Cap: 500, Cost: 5, Refund: 1, MinRetries: 1, MinInterval: time.Second}
	for name, field := range map[string]*int64{"cap": &rule.Cap, "cost": &rule.Cost, "refund": &rule.Refund} {
		if fields[name] != nil {
			*field = r.number(fields[name], at+"."+name, 0, retry.TokensMax)
		}
	}
	if fields["free"] != nil {
		if text, ok := r.Plain(fields["free"], at+".free", "a rate like 1/s"); ok {
			amount, interval, problem := written.ParseRate(text)
			if problem != "" {
				r.FailNode(fields["free"], at+".free", "%s", problem)
				return
			}
			rule.MinRetries, rule.MinInterval = amount, interval
		}
	}
	if err := rule.Validate(); err != nil {
		field, _, _ := strings.Cut(err.Error(), " ")
		if field == "min_retries" {
			field = "free"
		}
		r.Fail(at+"."+field, "%v", err)
	}
	f.Gateway.RetryTokens = rule
}

// attempts reads what is known of a request that comes again.
func (r *reader) attempts(n ast.Node, f *File) {
	if n == nil {
		return
	}
	const at = "attempts"
	fields := r.Fields(n, at, "remembered", "entries", "volatile", "markers")
	f.Gateway.Attempts.TTL = r.span(fields["remembered"], at+".remembered", time.Hour)
	f.Gateway.Attempts.Entries = int(r.number(fields["entries"], at+".entries", 256, 1<<24))
	if fields["volatile"] != nil {
		f.Gateway.Hashes.Volatile = r.texts(fields["volatile"], at+".volatile", canon.VolatileMax, volatileProblem)
	}
	markers := r.Items(fields["markers"], at+".markers")
	if len(markers) == 0 {
		return
	}
	known := attempt.Markers()
	if most := markersMax - len(known); len(markers) > most {
		r.FailNode(fields["markers"], at+".markers", "%d, more than %d", len(markers), most)
		return
	}
	for i, item := range markers {
		known = append(known, r.marker(item, fmt.Sprintf("%s.markers[%d]", at, i)))
	}
	f.Gateway.Markers, f.Who.Markers = known, nil
	if reader, err := attempt.NewReader(known); err == nil {
		f.Who.Markers = reader
	}
}

func volatileProblem(s string) string {
	if s == "" || len(s) > canon.NameMax {
		return fmt.Sprintf("%s is not 1 to %d bytes", written.Quote(s), canon.NameMax)
	}
	return ""
}

// marker reads a header in which a program of the operator's counts attempts.
func (r *reader) marker(n ast.Node, path string) attempt.Marker {
	fields := r.Fields(n, path, "header", "field", "first", "layer")
	m := attempt.Marker{
		Header: r.text(fields["header"], path+".header", headerProblem),
		Field:  r.Text(fields["field"], path+".field"),
		First:  uint32(r.number(fields["first"], path+".first", 0, 1)),
		Layer: chosen(r, fields["layer"], path+".layer", []string{"application", "sdk", "transport", "proxy"},
			attempt.Application, attempt.SDK, attempt.Transport, attempt.Proxy),
	}
	if fields["header"] == nil {
		r.Fail(path+".header", "missing")
	}
	return m
}

// circuit reads when a deployment is not asked for a while.
func (r *reader) circuit(n ast.Node, f *File) {
	if n == nil {
		return
	}
	const at = "circuit"
	fields := r.Fields(n, at, "throttles", "least", "fraction", "window", "open", "hint_max", "probe_max", "shared")
	c := &f.Gateway.Circuits
	c.CallThrottles = r.orNever(fields["throttles"], at+".throttles", written.ParseSize, 100)
	c.Least = int(r.number(fields["least"], at+".least", 1, 1<<20))
	c.FractionBP = r.orNever(fields["fraction"], at+".fraction", written.ParseShare, 10_000)
	c.Window = r.span(fields["window"], at+".window", time.Hour)
	c.Open = r.span(fields["open"], at+".open", time.Hour)
	c.HintMax = r.span(fields["hint_max"], at+".hint_max", 24*time.Hour)
	c.ProbeMax = r.span(fields["probe_max"], at+".probe_max", time.Hour)
	if open := cmp.Or(c.Open, openDefault); c.HintMax != 0 && c.HintMax < open {
		r.Fail(at+".hint_max", "%s is less than open, %s", written.FormatDuration(c.HintMax), written.FormatDuration(open))
	}
	r.shared(fields["shared"], f)
}

// shared reads by which limits gateways tell one another of circuits.
func (r *reader) shared(n ast.Node, f *File) {
	if n == nil {
		return
	}
	const at = "circuit.shared"
	fields := r.Fields(n, at, "tenants", "deployments", "probes")
	f.Gateway.Told.Circuits = r.text(fields["tenants"], at+".tenants", names.LimitProblem)
	f.Gateway.Told.Deployments = r.text(fields["deployments"], at+".deployments", names.LimitProblem)
	f.Gateway.Probes = r.text(fields["probes"], at+".probes", names.LimitProblem)
	// Others see for so long that a circuit was closed: it must not have opened again by then.
	if open := cmp.Or(f.Gateway.Circuits.Open, openDefault); f.Gateway.Probes != "" && open <= markDefault {
		r.Fail("circuit.open", "%s is not more than %s, with probes", written.FormatDuration(open),
			written.FormatDuration(markDefault))
	}
}

// orNever reads a number from 1 to most, or none, which is -1; 0 where it is absent.
func (r *reader) orNever(n ast.Node, path string, parse func(string) (int64, string), most int64) int {
	if n == nil {
		return 0
	}
	value, ok := strict.Value(r.Reader, n, path, "a number or none", orNone(parse))
	if ok && (value == 0 || value > most) {
		r.FailNode(n, path, "%d is out of range 1..%d: want more than nothing, or none", value, most)
	}
	return int(value)
}
