package fallback

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorlease/quorlease/client/gateway/estimate"
	"github.com/quorlease/quorlease/client/gateway/provider"
)

// LatencyMax is the longest that a model may take.
const LatencyMax = time.Hour

// targetsMax is how many deployments may stand in for one.
const targetsMax = 8

// Row is a deployment as far as fallbacks go.
type Row struct {
	Name     string
	Provider *provider.Table
	// OutputMax is the most tokens that its model puts out. 0: not known.
	OutputMax int64
	Model     *Model
}

// Format is what requests of a provider look like. Those of the same one can be sent to
// either.
func Format(t *provider.Table) string {
	switch {
	case t == nil:
		return ""
	case t.Name == provider.NameCompatible:
		return provider.NameOpenAI
	}
	return t.Name
}

// Check names everything that is wrong with the fallbacks of deployments, each with its place.
func Check(rows []Row, bad func(at, format string, args ...any)) {
	byName := make(map[string]*Row, len(rows))
	for i := range rows {
		byName[rows[i].Name] = &rows[i]
	}
	for i := range rows {
		at := fmt.Sprintf("deployments[%d]", i)
		rows[i].checkPrice(at, bad)
		m := rows[i].Model
		if len(m.To) > targetsMax {
			bad(at+".fallbacks", "%d are more than %d", len(m.To), targetsMax)
		}
		if len(m.To) > 0 && m.Price == nil {
			bad(at+".price", "is missing: what may go to fallbacks is a share of what %q costs", rows[i].Name)
		}
		seen := map[string]bool{}
		for j, target := range m.To {
			at := fmt.Sprintf("%s.fallbacks[%d]", at, j)
			if seen[target.Deployment] {
				bad(at+".deployment", "%q is there twice", target.Deployment)
			}
			seen[target.Deployment] = true
			rows[i].checkTarget(at, byName[target.Deployment], target, bad)
		}
	}
}

func (r *Row) checkPrice(at string, bad func(at, format string, args ...any)) {
	if p := r.Model.Price; p != nil {
		if p.Input < 0 || p.Input > PriceMax {
			bad(at+".price.input", "%d is out of range 0..%d", p.Input, int64(PriceMax))
		}
		if p.Output < 0 || p.Output > PriceMax {
			bad(at+".price.output", "%d is out of range 0..%d", p.Output, int64(PriceMax))
		}
	}
	if l := r.Model.Latency; l < 0 || l > LatencyMax {
		bad(at+".latency", "%s is out of range 0s..%s", l, LatencyMax)
	}
}

// byPath are providers whose requests can't be sent to another model of theirs.
var byPath = []string{provider.NameGemini, provider.NameVertex, provider.NameBedrock}

func (r *Row) checkTarget(at string, to *Row, target Target, bad func(at, format string, args ...any)) {
	switch {
	case to == nil:
		bad(at+".deployment", "%q is no deployment", target.Deployment)
	case to.Name == r.Name:
		bad(at+".deployment", "%q can't stand in for itself", r.Name)
	case to.Provider == nil || r.Provider == nil:
	case slices.Contains(byPath, r.Provider.Name):
		bad(at+".deployment", "%q is of %s, whose requests name their model in the path: they have no fallbacks",
			r.Name, r.Provider.Name)
	case Format(to.Provider) != Format(r.Provider):
		bad(at+".deployment", "%q is of %s and %q of %s: requests of one can't be sent to the other",
			to.Name, to.Provider.Name, r.Name, r.Provider.Name)
	case to.Model.Price == nil:
		bad(at+".deployment", "%q has no price: what it costs would be bounded by nothing", to.Name)
	case to.Model.Price.Output > 0 && to.OutputMax == 0:
		bad(at+".deployment", "%q has no output_max: nobody can say what a request costs at most", to.Name)
	}
	if n := len(target.Model); n > estimate.TextMax {
		bad(at+".model", "%d bytes are more than %d", n, estimate.TextMax)
	}
}
