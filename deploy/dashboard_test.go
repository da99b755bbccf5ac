package deploy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These are the parts of Grafana's dashboard model that quorlease.json uses.
// Decoding is strict, so that a misspelt field is an error and not nothing.
type dashboard struct {
	UID           string   `json:"uid"`
	Title         string   `json:"title"`
	Description   string   `json:"description"`
	Tags          []string `json:"tags"`
	SchemaVersion int      `json:"schemaVersion"`
	Version       int      `json:"version"`
	Editable      bool     `json:"editable"`
	GraphTooltip  int      `json:"graphTooltip"`
	Refresh       string   `json:"refresh"`
	Timezone      string   `json:"timezone"`
	Time          struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"time"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []annotation `json:"list"`
	} `json:"annotations"`
	Panels []panel `json:"panels"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type variable struct {
	Name       string  `json:"name"`
	Label      string  `json:"label"`
	Type       string  `json:"type"`
	Datasource *source `json:"datasource"`
	Query      string  `json:"query"`
	Refresh    int     `json:"refresh"`
	IncludeAll bool    `json:"includeAll"`
	Multi      bool    `json:"multi"`
	AllValue   string  `json:"allValue"`
	Sort       int     `json:"sort"`
}

type annotation struct {
	Name        string `json:"name"`
	Datasource  source `json:"datasource"`
	Enable      bool   `json:"enable"`
	IconColor   string `json:"iconColor"`
	Expr        string `json:"expr"`
	TitleFormat string `json:"titleFormat"`
}

type panel struct {
	ID          int     `json:"id"`
	Type        string  `json:"type"`
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Datasource  *source `json:"datasource"`
	Collapsed   bool    `json:"collapsed"`
	Panels      []panel `json:"panels"`
	GridPos     struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	} `json:"gridPos"`
	FieldConfig struct {
		Defaults  field      `json:"defaults"`
		Overrides []override `json:"overrides"`
	} `json:"fieldConfig"`
	Options struct {
		ColorMode     string `json:"colorMode"`
		GraphMode     string `json:"graphMode"`
		ReduceOptions struct {
			Calcs []string `json:"calcs"`
		} `json:"reduceOptions"`
		Legend struct {
			DisplayMode string `json:"displayMode"`
			Placement   string `json:"placement"`
		} `json:"legend"`
		Tooltip struct {
			Mode string `json:"mode"`
			Sort string `json:"sort"`
		} `json:"tooltip"`
		ShowHeader bool `json:"showHeader"`
		SortBy     []struct {
			DisplayName string `json:"displayName"`
			Desc        bool   `json:"desc"`
		} `json:"sortBy"`
	} `json:"options"`
	Transformations []struct {
		ID      string `json:"id"`
		Options struct {
			ExcludeByName map[string]bool   `json:"excludeByName"`
			RenameByName  map[string]string `json:"renameByName"`
		} `json:"options"`
	} `json:"transformations"`
	Targets []target `json:"targets"`
}

type field struct {
	Unit       string `json:"unit"`
	Min        *int   `json:"min"`
	Max        *int   `json:"max"`
	Thresholds struct {
		Mode  string `json:"mode"`
		Steps []struct {
			Color string   `json:"color"`
			Value *float64 `json:"value"`
		} `json:"steps"`
	} `json:"thresholds"`
	Color struct {
		Mode string `json:"mode"`
	} `json:"color"`
	Custom struct {
		DrawStyle   string `json:"drawStyle"`
		LineWidth   int    `json:"lineWidth"`
		FillOpacity int    `json:"fillOpacity"`
		ShowPoints  string `json:"showPoints"`
		Stacking    struct {
			Mode string `json:"mode"`
		} `json:"stacking"`
		ThresholdsStyle struct {
			Mode string `json:"mode"`
		} `json:"thresholdsStyle"`
		CellOptions struct {
			Type string `json:"type"`
		} `json:"cellOptions"`
	} `json:"custom"`
}

type override struct {
	Matcher struct {
		ID      string `json:"id"`
		Options string `json:"options"`
	} `json:"matcher"`
	Properties []struct {
		ID    string `json:"id"`
		Value struct {
			Mode       string `json:"mode"`
			FixedColor string `json:"fixedColor"`
		} `json:"value"`
	} `json:"properties"`
}

type target struct {
	RefID        string `json:"refId"`
	Datasource   source `json:"datasource"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Instant      bool   `json:"instant"`
	Range        bool   `json:"range"`
	Format       string `json:"format"`
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(read(t, "grafana/quorlease.json")))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatalf("quorlease.json: %v", err)
	}
	if decoder.More() {
		t.Fatal("quorlease.json: more than one document")
	}
	return d
}

// TestDashboardPanels: each has a place of its own, something to show, and says what.
func TestDashboardPanels(t *testing.T) {
	d := readDashboard(t)
	if d.UID != "quorlease" || d.SchemaVersion < 36 || len(d.Panels) < 20 {
		t.Fatalf("uid %q, schema %d, %d panels", d.UID, d.SchemaVersion, len(d.Panels))
	}
	units := []string{"none", "short", "percentunit", "reqps", "s", "bytes"}
	taken := map[[2]int]string{}
	for i, p := range d.Panels {
		if p.ID != i+1 || p.Title == "" {
			t.Errorf("panel %d has the id %d and the title %q", i+1, p.ID, p.Title)
		}
		at := p.GridPos
		if at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > 24 {
			t.Errorf("%s: its place %+v is beyond the 24 columns", p.Title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if !slices.Contains([]string{"stat", "timeseries", "table"}, p.Type) || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("%s: type %q, description %q, %d targets", p.Title, p.Type, p.Description, len(p.Targets))
		}
		if !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
			t.Errorf("%s: unit %q", p.Title, p.FieldConfig.Defaults.Unit)
		}
		checkTargets(t, p)
	}
}

// checkTargets: every question goes to the chosen Prometheus, and what has a colour
// of its own is there.
func checkTargets(t *testing.T, p panel) {
	t.Helper()
	chosen := source{"prometheus", "${datasource}"}
	var refs, legends []string
	for _, one := range p.Targets {
		if slices.Contains(refs, one.RefID) || one.RefID == "" || one.Instant == one.Range {
			t.Errorf("%s: target %q, instant %t, range %t", p.Title, one.RefID, one.Instant, one.Range)
		}
		if one.Datasource != chosen || p.Datasource == nil || *p.Datasource != chosen {
			t.Errorf("%s: asks %v", p.Title, one.Datasource)
		}
		refs, legends = append(refs, one.RefID), append(legends, one.LegendFormat)
	}
	for _, o := range p.FieldConfig.Overrides {
		if o.Matcher.ID != "byName" || !slices.Contains(legends, o.Matcher.Options) {
			t.Errorf("%s: nothing is called %q", p.Title, o.Matcher.Options)
		}
	}
	for i, step := range p.FieldConfig.Defaults.Thresholds.Steps {
		if (step.Value == nil) != (i == 0) {
			t.Errorf("%s: threshold %d has no value, or the first one has", p.Title, i)
		}
	}
}

// expressions are all that the dashboard asks, with Grafana's variables filled in,
// and what shows the answer.
func (d dashboard) expressions() (all []target) {
	fill := strings.NewReplacer("$__rate_interval", "1m", "$limit", ".*")
	for _, p := range d.Panels {
		for _, one := range p.Targets {
			all = append(all, target{RefID: p.Title, Expr: fill.Replace(one.Expr), LegendFormat: one.LegendFormat})
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, target{RefID: a.Name, Expr: a.Expr, LegendFormat: a.TitleFormat})
	}
	return all
}

// TestDashboardExpressions: Prometheus can read them, and every figure in them is
// documented or recorded by the rules.
func TestDashboardExpressions(t *testing.T) {
	page := string(read(t, "../docs/reference/metrics.md"))
	documented := names(regexp.MustCompile("(?m)^\\| `(quorlease_[a-z_]+)` \\|"), page)
	recorded := map[string]string{}
	for _, r := range readRules(t, false) {
		recorded[r.Record] = r.Expr
	}
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for i, one := range readDashboard(t).expressions() {
		if strings.Contains(one.Expr, "$") {
			t.Errorf("%s: a variable that nobody fills in: %s", one.RefID, one.Expr)
		}
		fmt.Fprintf(&rules, "      - {record: 'panel:%d', expr: %q}\n", i, one.Expr)
		known := one.Expr
		for _, name := range regexp.MustCompile(`quorlease:[a-z0-9_:]+`).FindAllString(one.Expr, -1) {
			if recorded[name] == "" {
				t.Errorf("%s: nothing records %s", one.RefID, name)
			}
			known += " " + recorded[name]
		}
		for _, name := range regexp.MustCompile(`quorlease_[a-z_]+`).FindAllString(one.Expr, -1) {
			whole := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if !slices.Contains(documented, name) && !slices.Contains(documented, whole) {
				t.Errorf("%s: docs/reference/metrics.md has no %s", one.RefID, name)
			}
		}
		for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(one.LegendFormat, -1) {
			if !strings.Contains(known, label[1]) && label[1] != "instance" && one.RefID != "Alerts" {
				t.Errorf("%s: the answer to %s has no label %s", one.RefID, one.Expr, label[1])
			}
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	write(t, file, []byte(rules.String()))
	run(t, promtool(t), "check", "rules", file)
}

// TestDashboardShows what the person on call has to see.
func TestDashboardShows(t *testing.T) {
	shown := ""
	for _, one := range readDashboard(t).expressions() {
		shown += one.Expr + "\n"
	}
	for _, want := range []string{
		"quorlease:retry_fraction_top:max", "quorlease_clients_over_budget", "quorlease_provider_throttled_total",
		"quorlease_limit_level_tokens", `decision="denied"`, "quorlease_queue_depth", "quorlease_queue_oldest_seconds",
		"quorlease_queue_tokens", "quorlease:queue_depth:deriv2m", "quorlease:decision_seconds:p95_rate1m",
		"quorlease:commit_seconds:p99_rate1m", "quorlease_follower_lag_entries", "quorlease_disk_free_bytes",
		"quorlease_client_fail_open", "quorlease_has_quorum",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("nothing shows %s", want)
		}
	}
	for _, p := range readDashboard(t).Panels {
		for _, o := range p.FieldConfig.Overrides {
			if got := o.Properties[0].Value.FixedColor; o.Matcher.Options == "throttled" && got != "red" {
				t.Errorf("%s: throttled is %s, want red", p.Title, got)
			}
		}
	}
}
