package front

import (
	"fmt"

	"github.com/quorlease/quorlease/bench/plot"
	"github.com/quorlease/quorlease/bench/sheet"
)

// called are the sides as people call them.
var called = map[string]string{
	proxied: "bare proxy, paced", fronted: "gateway, paced", slotted: "gateway with slots, paced",
	committed: "bare proxy, slots by callers", busyProxied: "bare proxy", busyFronted: "gateway",
}

// Section is the run as a part of a sheet.
func (r *Result) Section() sheet.Section {
	return sheet.Section{
		Section: "gateway", Title: "A gateway in front of a provider", Hasty: r.Hasty, Bounds: r.Bounds,
		Heading: []string{
			"a gateway that asks three nodes, beside net/http/httputil.ReverseProxy; a process each, and a provider that " +
				"answers at once; all in each round",
			"paced: latencies from the intended start; else each caller asks again at once",
		},
		Tables: []sheet.Table{r.costTable(), r.stormTable(), r.heapTable(), r.fillTable()},
	}
}

func (r *Result) costTable() sheet.Table {
	t := sheet.Table{Title: "calls through a gateway, medians", Heads: []string{
		"how", "calls/s", "p50 ms", "p99 ms", "processor time us",
	}}
	for _, side := range sides {
		all := func(f figure) string { return plot.Spread(spread(r.Rounds, f.of(side)), "") }
		cpu := "not known"
		if len(r.Rounds) > 0 && r.Rounds[0][side].CPU != nil {
			cpu = all(func(t Timed) float64 { return *t.CPU })
		}
		t.Rows = append(t.Rows, []string{
			called[side], all(func(t Timed) float64 { return t.PerSecond }), all(p50), all(p99), cpu,
		})
	}
	return t
}

func (r *Result) stormTable() sheet.Table {
	t := sheet.Table{Title: "while one client retries without end, round by round", Heads: []string{
		"round", "refusals/s", "p50 ms", "p99 ms", "others/s", "p50 ms", "p99 ms", "p99 ms without it",
	}}
	row := func(name string, refusals, with Timed, without string) {
		t.Rows = append(t.Rows, []string{
			name, plot.Number(refusals.PerSecond), plot.Number(refusals.P50), plot.Number(refusals.P99),
			plot.Number(with.PerSecond), plot.Number(with.P50), plot.Number(with.P99), without,
		})
	}
	for i := range r.Storm.Pairs {
		p := &r.Storm.Pairs[i]
		row(plot.Grouped(int64(i+1)), p.Refusals, p.With, plot.Number(p.Without.P99))
	}
	row("without a pause", r.Storm.Refusals, r.Storm.Others, "")
	return t
}

// heapRows is how many looks at the memory are shown.
const heapRows = 11

func (r *Result) heapTable() sheet.Table {
	t := sheet.Table{
		Title: "the gateway's memory in a storm without a pause", Heads: []string{"after s", "collects at MB", "resident MB"},
	}
	n := len(r.Storm.Heap)
	rows := min(n, heapRows)
	for i := range rows {
		one := &r.Storm.Heap[i*(n-1)/max(1, rows-1)]
		t.Rows = append(t.Rows, []string{plot.Number(one.At), plot.Number(one.Collected), plot.Number(one.Resident)})
	}
	return t
}

func (r *Result) fillTable() sheet.Table {
	t := sheet.Table{
		Title: fmt.Sprintf("a limit of %s tokens of input a second, of which %s are handed out; prompts of lognormal sizes",
			plot.Grouped(sizedRate), r.Fill.Target),
		Heads: []string{"calls", "refused by the provider", "tokens", "at four characters", "used, one fifth after another"},
	}
	used := ""
	for i, part := range r.Fill.Used {
		if i > 0 {
			used += ", "
		}
		used += plot.Number(part)
	}
	t.Rows = append(t.Rows, []string{
		plot.Grouped(r.Fill.Calls), plot.Grouped(r.Fill.Throttled), plot.Grouped(r.Fill.Tokens),
		plot.Grouped(r.Fill.Estimated), used,
	})
	return t
}
