package clientprom

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorlease/quorlease/client"
)

var _ Source = (*client.Client)(nil)

type fake struct {
	open      bool
	admitted  map[string]int64
	decisions map[[2]string]int64
	shares    map[string]float64
}

func (f *fake) FailOpen() bool { return f.open }

func (f *fake) EachAdmitted(yield func(limit string, tokens int64)) {
	for limit, tokens := range f.admitted {
		yield(limit, tokens)
	}
}

func (f *fake) EachDecision(yield func(source, decision string, count int64)) {
	for which, count := range f.decisions {
		yield(which[0], which[1], count)
	}
}

func (f *fake) EachShare(yield func(limit string, part float64)) {
	for limit, part := range f.shares {
		yield(limit, part)
	}
}

// gather are the samples of a registry that checks what it is told.
func gather(t *testing.T, c prometheus.Collector) (lines []string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			name := strings.TrimPrefix(family.GetName(), "quorlease_client_")
			lines = append(lines, fmt.Sprintf("%s %s{%s} %g",
				strings.ToLower(family.GetType().String()), name, strings.Join(labels, ","), value))
		}
	}
	slices.Sort(lines)
	return lines
}

func TestFigures(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		fake fake
		want string
	}{
		{"nothing_yet", fake{}, `
counter decisions_total{app="x",decision="denied",source="consensus"} 0
counter decisions_total{app="x",decision="denied",source="escrow"} 0
counter decisions_total{app="x",decision="denied",source="local"} 0
counter decisions_total{app="x",decision="denied",source="node"} 0
counter decisions_total{app="x",decision="granted",source="consensus"} 0
counter decisions_total{app="x",decision="granted",source="escrow"} 0
counter decisions_total{app="x",decision="granted",source="local"} 0
counter decisions_total{app="x",decision="granted",source="node"} 0
gauge fail_open{app="x"} 0
`},
		{"A20_while_open", fake{
			open: true, admitted: map[string]int64{"gpt": 7, "demo": 3},
			decisions: map[[2]string]int64{{"local", "granted"}: 9, {"consensus", "denied"}: 2, {"oracle", "maybe"}: 1},
			shares:    map[string]float64{"gpt": 0.25},
		}, `
counter decisions_total{app="x",decision="denied",source="consensus"} 2
counter decisions_total{app="x",decision="denied",source="escrow"} 0
counter decisions_total{app="x",decision="denied",source="local"} 0
counter decisions_total{app="x",decision="denied",source="node"} 0
counter decisions_total{app="x",decision="granted",source="consensus"} 0
counter decisions_total{app="x",decision="granted",source="escrow"} 0
counter decisions_total{app="x",decision="granted",source="local"} 9
counter decisions_total{app="x",decision="granted",source="node"} 0
counter decisions_total{app="x",decision="other",source="other"} 1
counter fail_open_admitted_total{app="x",limit="demo"} 3
counter fail_open_admitted_total{app="x",limit="gpt"} 7
gauge fail_open{app="x"} 1
gauge share_ratio{app="x",limit="gpt"} 0.25
`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			collector := New(&c.fake, prometheus.Labels{"app": "x"})
			want := strings.Split(strings.TrimSpace(c.want), "\n")
			if diff := cmp.Diff(want, gather(t, collector)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestG10SeriesAreBounded: more limits than there is room for are one series, and
// no counter falls when more come.
func TestG10SeriesAreBounded(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		f := &fake{admitted: map[string]int64{"zebra": 1}}
		c := New(f, nil)
		if got := c.byLimit(); got["zebra"] != 1 {
			t.Fatalf("got %v", got)
		}
		for i := range 1000 {
			f.admitted[fmt.Sprintf("limit-%04d", i)] = 1
		}
		for range 2 {
			got := c.byLimit()
			if len(got) != limitsMax+1 || got["zebra"] != 1 || got[other] != 1001-limitsMax {
				t.Errorf("%d series, zebra %d, other %d; want %d, 1, %d",
					len(got), got["zebra"], got[other], limitsMax+1, 1001-limitsMax)
			}
		}
	})
}
