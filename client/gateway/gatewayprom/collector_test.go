package gatewayprom

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/quorlease/quorlease/client/gateway"
	"github.com/quorlease/quorlease/client/gateway/estimate"
	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

var update = flag.Bool("update", false, "write what the figures are into testdata")

var _ Source = (*gateway.Gateway)(nil)

// fake is a gateway whose figures are set.
type fake struct {
	mu    sync.Mutex
	stats gateway.Stats // guarded by mu
}

func (f *fake) Stats() gateway.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

// gather is what a registry that checks what it is told has of a collector.
func gather(t *testing.T, c prometheus.Collector) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// samples are the values of all series, by their names without the prefix.
func samples(families []*dto.MetricFamily) map[string]float64 {
	values := make(map[string]float64)
	for _, family := range families {
		name := strings.TrimPrefix(family.GetName(), "quorlease_gateway_")
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			series := name + "{" + strings.Join(labels, ",") + "}"
			if h := metric.GetHistogram(); h != nil {
				values[series+" count"], values[series+" sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
				for _, b := range h.GetBucket() {
					values[fmt.Sprintf("%s %g", series, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
				continue
			}
			values[series] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return values
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestNamesAreAsReviewed: names, kinds, labels and their values are a contract with
// whoever asks for them. It is what a gateway shows that has done nothing yet.
func TestNamesAreAsReviewed(t *testing.T) {
	t.Parallel()
	families := gather(t, New(&fake{}, nil))
	var page strings.Builder
	for _, family := range families {
		fmt.Fprintf(&page, "%s %s\n    %s\n",
			strings.ToLower(family.GetType().String()), family.GetName(), family.GetHelp())
		values := map[string][]string{}
		var names []string
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if values[label.GetName()] == nil {
					names = append(names, label.GetName())
				}
				if !slices.Contains(values[label.GetName()], label.GetValue()) {
					values[label.GetName()] = append(values[label.GetName()], label.GetValue())
				}
			}
		}
		for _, name := range names {
			fmt.Fprintf(&page, "    %s: %s\n", name, strings.Join(values[name], " "))
		}
	}
	golden(t, "names.golden", page.String())
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// fill sets each number in a value to another one, and calls yield with its place.
func fill(v reflect.Value, place string, yield func(place string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[estimate.Errors]() {
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), place+"."+v.Type().Field(i).Name, yield)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), fmt.Sprintf("%s[%d]", place, i), yield)
		}
	default:
		yield(place, v)
	}
}

func set(v reflect.Value, n uint64) {
	if v.CanUint() {
		v.SetUint(n)
	} else {
		v.SetInt(int64(n))
	}
}

// TestEveryFigureIsExported: each number of Stats changes one series, to itself. Which one
// is as reviewed.
func TestEveryFigureIsExported(t *testing.T) {
	t.Parallel()
	before := samples(gather(t, New(&fake{}, nil)))
	var places []string
	fill(reflect.ValueOf(&gateway.Stats{}).Elem(), "", func(place string, _ reflect.Value) {
		places = append(places, place)
	})
	slices.Sort(places)
	var page strings.Builder
	for _, place := range places {
		one := &fake{}
		fill(reflect.ValueOf(&one.stats).Elem(), "", func(at string, v reflect.Value) {
			if at == place {
				set(v, 7)
			}
		})
		var changed []string
		for series, value := range samples(gather(t, New(one, nil))) {
			if was, ok := before[series]; ok && value != was {
				changed = append(changed, fmt.Sprintf("%s %g", series, value))
			}
		}
		// Refused is the sum of Refusals.
		if place == ".Refused" && len(changed) == 0 {
			continue
		}
		if len(changed) != 1 || !strings.HasSuffix(changed[0], " 7") {
			t.Errorf("Stats%s = 7 changes %q, want one series to 7", place, changed)
			continue
		}
		fmt.Fprintf(&page, "Stats%s %s\n", place, strings.TrimSuffix(changed[0], " 7"))
	}
	golden(t, "figures.golden", page.String())
}

func TestLabelsAreAddedToAll(t *testing.T) {
	t.Parallel()
	for series := range samples(gather(t, New(&fake{}, prometheus.Labels{"gateway": "east"}))) {
		if !strings.Contains(series, `gateway="east"`) {
			t.Errorf("%s has no label gateway", series)
		}
	}
}

// TestReasonsAndClassesHaveRoom: what is counted by them is an array that is as long as
// there are some. One more has to make it longer.
func TestReasonsAndClassesHaveRoom(t *testing.T) {
	t.Parallel()
	var s gateway.Stats
	// What is no reason is Undecided, and what is no class is unknown.
	if r := refuse.Reason(len(s.Refusals)); r.String() != refuse.Undecided.String() {
		t.Errorf("Stats.Refusals has no room for %s", r)
	}
	if c := provider.Class(len(s.Answers)); c.String() != "UNKNOWN" {
		t.Errorf("Stats.Answers has no room for %s", c)
	}
}

// TestSeriesAreBounded: no name in the figures makes a series, and none comes later.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		f := &fake{}
		c := New(f, nil)
		before := samples(gather(t, c))
		fill(reflect.ValueOf(&f.stats).Elem(), "", func(_ string, v reflect.Value) { set(v, 1<<40) })
		f.stats.Estimates = learnt(t, 2000, func(i int) int64 { return int64(i) })
		after := samples(gather(t, c))
		if len(before) != len(after) || len(after) > 150 {
			t.Errorf("%d series, then %d; want the same, at most 150", len(before), len(after))
		}
	})
}

func TestScrapesAtOnce(t *testing.T) {
	t.Parallel()
	f := &fake{}
	c := New(f, nil)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := 0.0
			for range 50 {
				f.mu.Lock()
				f.stats.Requests++
				f.mu.Unlock()
				families, err := registry.Gather()
				if err != nil {
					t.Error(err)
					return
				}
				now := samples(families)["requests_total{}"]
				if now <= last {
					t.Errorf("%g requests after %g, want more", now, last)
				}
				last = now
			}
		})
	}
	all.Wait()
	if got := samples(gather(t, c))["requests_total{}"]; got != 200 {
		t.Errorf("%g requests, want 200", got)
	}
}
