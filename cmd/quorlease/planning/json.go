package planning

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"

	"github.com/quorlease/quorlease/plan"
)

// As everywhere in JSON, numbers of 64 bits are strings, and so are fractions, with
// three decimals at most. A time is seconds with an s, or "never".

type planJSON struct {
	Limit             string          `json:"limit"`
	Place             string          `json:"place"`
	TargetBp          string          `json:"target_bp"`
	Binding           string          `json:"binding"`
	LivePerMinute     string          `json:"live_per_minute"`
	HeadroomPerMinute string          `json:"headroom_per_minute"`
	Margin            marginJSON      `json:"margin"`
	Dimensions        []dimensionJSON `json:"dimensions"`
	Tasks             string          `json:"tasks"`
	Paces             []paceJSON      `json:"paces"`
	Clients           string          `json:"clients"`
	Jitter            string          `json:"jitter"`
	Spreads           []spreadJSON    `json:"spreads"`
	Arrivals          string          `json:"arrivals"`
	WhatIf            []cellJSON      `json:"what_if"`
}

type marginJSON struct {
	SuggestedBp string     `json:"suggested_bp"`
	Measured    bool       `json:"measured"`
	Errors      errorsJSON `json:"errors"`
}

// errorsJSON is all 0 where they were not measured here.
type errorsJSON struct {
	Tasks  int    `json:"tasks"`
	P50Bp  string `json:"p50_bp"`
	P90Bp  string `json:"p90_bp"`
	P99Bp  string `json:"p99_bp"`
	MostBp string `json:"most_bp"`
}

type dimensionJSON struct {
	Name               string `json:"name"`
	LimitPerMinute     string `json:"limit_per_minute"`
	Cost               string `json:"cost"`
	TasksPerMinute     string `json:"tasks_per_minute"`
	AtTargetPerMinute  string `json:"at_target_per_minute"`
	LivePercent        string `json:"live_percent"`
	WorstMinutePercent string `json:"worst_minute_percent"`
}

type paceJSON struct {
	TargetBp          string   `json:"target_bp"`
	Of                []string `json:"of"`
	TasksPerMinute    string   `json:"tasks_per_minute"`
	BackfillPerMinute string   `json:"backfill_per_minute"`
	ETA               string   `json:"eta"`
}

type spreadJSON struct {
	Window    string `json:"window"`
	PerSecond string `json:"per_second"`
	Fits      bool   `json:"fits"`
}

type cellJSON struct {
	Of             string   `json:"of"`
	Capacity       string   `json:"capacity"`
	RatePerMinute  string   `json:"rate_per_minute"`
	Admitted       string   `json:"admitted"`
	Held           string   `json:"held"`
	HeldEachSecond []string `json:"held_each_second"`
	NoneWaitsAfter string   `json:"none_waits_after"`
}

// inJSON is the plan for programs.
func (r *result) inJSON() ([]byte, error) {
	a, e := r.answer, plan.Errors{}
	if r.errors != nil {
		e = r.errors.Errors
	}
	out := planJSON{
		Limit: r.limit.GetName(), Place: r.place, TargetBp: whole(r.question.Target),
		Binding: a.Parts[a.Binding].Name, LivePerMinute: exact(a.Live), HeadroomPerMinute: exact(a.Headroom),
		Margin: marginJSON{
			whole(a.Margin), a.Measured, errorsJSON{int(e.Tasks), whole(e.P50), whole(e.P90), whole(e.P99), whole(e.Most)},
		},
		Tasks: whole(r.question.Tasks), Clients: whole(r.question.Clients), Arrivals: whole(r.question.Arrivals),
		Dimensions: []dimensionJSON{}, Paces: []paceJSON{}, Spreads: []spreadJSON{}, WhatIf: []cellJSON{},
	}
	for _, p := range a.Parts {
		out.Dimensions = append(out.Dimensions, dimensionJSON{
			Name: p.Name, LimitPerMinute: exact(p.Rate.PerMinute()), Cost: whole(p.Cost),
			TasksPerMinute: exact(p.Tasks), AtTargetPerMinute: exact(p.AtTarget),
			LivePercent: percentOf(p.Live), WorstMinutePercent: percentOf(p.Worst),
		})
	}
	for _, p := range a.Paces {
		one := paceJSON{
			TargetBp: whole(p.Target), Of: kinds(p),
			TasksPerMinute: exact(p.Tasks), BackfillPerMinute: exact(p.Backfill),
		}
		if r.question.Tasks > 0 {
			one.ETA = lasts(p.ETA)
		}
		out.Paces = append(out.Paces, one)
	}
	if r.question.Clients > 0 {
		out.Jitter = lasts(a.Jitter)
	}
	for _, s := range a.Spreads {
		out.Spreads = append(out.Spreads, spreadJSON{lasts(s.Window), exact(s.PerSecond), s.Fits})
	}
	for _, c := range a.WhatIf {
		cell := cellJSON{
			Of: of(c), Capacity: whole(c.Capacity), RatePerMinute: exact(c.Rate), Admitted: whole(c.Admitted),
			Held: whole(c.Held), HeldEachSecond: []string{}, NoneWaitsAfter: lasts(c.Empty),
		}
		for _, n := range c.After {
			cell.HeldEachSecond = append(cell.HeldEachSecond, whole(n))
		}
		out.WhatIf = append(out.WhatIf, cell)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("print the plan: %w", err)
	}
	return append(text, '\n'), nil
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func exact(r *big.Rat) string { return decimals(r, 3) }

func percent(r *big.Rat) *big.Rat { return new(big.Rat).Mul(r, hundred) }

// percentOf is "infinite" for a part of nothing.
func percentOf(r *big.Rat) string {
	if r == nil {
		return "infinite"
	}
	return exact(percent(r))
}

func lasts(seconds *big.Rat) string {
	if seconds == nil {
		return "never"
	}
	return decimals(seconds, 3) + "s"
}
