package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type rulesFile struct {
	Groups []struct {
		Name     string `yaml:"name"`
		Interval string `yaml:"interval"`
		Rules    []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// readRules are those that are alerts, or those that record.
func readRules(t *testing.T, alerts bool) (rules []rule) {
	t.Helper()
	var file rulesFile
	if err := yaml.UnmarshalWithOptions(read(t, "prometheus/rules.yml"), &file, yaml.Strict()); err != nil {
		t.Fatalf("rules.yml: %s", yaml.FormatError(err, false, true))
	}
	for _, group := range file.Groups {
		rules = append(rules, slices.DeleteFunc(group.Rules, func(r rule) bool { return (r.Alert != "") != alerts })...)
	}
	return rules
}

// The tests of the rules, by what they are about.
const (
	ofNodes     = "rules_test.yml"
	ofClients   = "rules_clients_test.yml"
	ofProviders = "rules_providers_test.yml"
	ofGateways  = "rules_gateways_test.yml"
)

// promtool is Prometheus's own tool.
func promtool(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus): the alert rules' own tests did not run")
	}
	return program
}

// TestRules runs the rules' own tests with Prometheus's own tool.
func TestRules(t *testing.T) {
	program := promtool(t)
	for _, args := range [][]string{
		{"check", "rules", "rules.yml"},
		{"check", "config", "prometheus.yml"},
		{"test", "rules", ofNodes},
		{"test", "rules", ofClients},
		{"test", "rules", ofProviders},
		{"test", "rules", ofGateways},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), program, args...)
			command.Dir = "prometheus"
			if output, err := command.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

// TestRulesCanFail moves each bound and wants the rules' tests to notice.
func TestRulesCanFail(t *testing.T) {
	program := promtool(t)
	const above, grows = `shadow"}) > 0.1`, "deriv2m > 0.1"
	const throttled, throttled429 = "der_throttled:ratio_rate5m > 0.02", "way_throttled:ratio_rate5m > 0.02"
	for _, change := range []struct{ row, tests, from, to string }{
		{"", ofNodes, "has_quorum == 0", "has_quorum == 1"},
		{"", ofNodes, "> 250", "> 249"},
		{"", ofNodes, "> 250", "> 251"},
		{"", ofNodes, "for: 10s", "for: 5s"},
		{"", ofNodes, "for: 5s", "for: 0s"},
		{"", ofNodes, "1.5 *", "1.6 *"},
		{"", ofNodes, "1.5 *", "1.4 *"},
		{"", ofNodes, "keys_blocked > 0", "keys_blocked > 1"},
		{"S1-10", ofProviders, throttled, "der_throttled:ratio_rate5m >= 0.02"},
		{"S1-10", ofProviders, throttled, "der_throttled:ratio_rate5m > 0.0201"},
		{"S1-10", ofProviders, throttled, "der_throttled:ratio_rate5m > 0.0198"},
		{"S1-11", ofProviders, "sum(irate(quorlease_provider_throttled", "sum(rate(quorlease_provider_throttled"},
		{"S1-11", ofProviders, "throttled_total[5m]", "throttled_total[10m]"},
		{"S1-36", ofClients, "fail_open == 1", "fail_open == 2"},
		{"S1-41", ofClients, above, `shadow"}) >= 0.1`},
		{"S1-41", ofClients, above, `shadow"}) > 0.1001`},
		{"S1-41", ofClients, "for: 2m", "for: 119s"},
		{"S1-41", ofClients, "for: 2m", "for: 121s"},
		{"S1-42", ofClients, "for: 2m", "for: 89s"},
		{"S1-47", ofClients, `{budget!="shadow"}`, ""},
		{"S1-48", ofClients, `max by (client) (quorlease_retry_fraction_top{budget="spent"})`, "quorlease_leases"},
		{"S2-29", ofProviders, grows, "deriv2m >= 0.09"},
		{"S2-29", ofProviders, grows, "deriv2m > 0.11"},
		{"S1-10", ofGateways, throttled429, "way_throttled:ratio_rate5m >= 0.02"},
		{"S1-10", ofGateways, throttled429, "way_throttled:ratio_rate5m > 0.0201"},
		{"S1-10", ofGateways, throttled429, "way_throttled:ratio_rate5m > 0.0198"},
		{"S1-10", ofGateways, `{status="429"}`, ""},
		{"", ofGateways, "for: 5m", "for: 295s"},
		{"", ofGateways, "for: 5m", "for: 301s"},
		{"", ofGateways, "circuits_open > 0", "circuits_open > 1"},
		{"", ofGateways, "and ignoring (reason, status, action)", "or ignoring (reason, status, action)"},
		{"", ofGateways, `{reason="circuit_open"}`, ""},
		{"", ofGateways, `{action="deferred"}`, ""},
		{"", ofGateways, `{action="deferred"}`, `{action="shed"}`},
		{"", ofGateways, "bodies_refused_total[5m]) > 0", "bodies_refused_total[5m]) > 2"},
		{"", ofGateways, "bodies_refused_total[5m])", "bodies_refused_total[10m])"},
	} {
		t.Run(strings.TrimSpace(change.row+" "+change.from+" to "+change.to), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			rules := string(read(t, "prometheus/rules.yml"))
			changed := strings.ReplaceAll(rules, change.from, change.to)
			if changed == rules {
				t.Fatalf("rules.yml has no %q", change.from)
			}
			write(t, filepath.Join(dir, "rules.yml"), []byte(changed))
			write(t, filepath.Join(dir, change.tests), read(t, "prometheus/"+change.tests))
			command := exec.CommandContext(t.Context(), program, "test", "rules", change.tests)
			command.Dir = dir
			if output, err := command.CombinedOutput(); err == nil {
				t.Errorf("passes all the same\n%s", output)
			}
		})
	}
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAlertsHaveAPageAndAMetric: an alert that nobody can look up, or over a
// metric that no node and no client exports, is worse than none.
func TestAlertsHaveAPageAndAMetric(t *testing.T) {
	page := string(read(t, "../docs/operating/alerts.md"))
	kinds := string(read(t, "../cluster/events/event.go")) + string(read(t, "../client/incident/incident.go"))
	exported := sources(t, "../cluster", "../api", "../client/clientprom", "../client/gateway/gatewayprom")
	recorded := map[string]string{}
	for _, r := range readRules(t, false) {
		recorded[r.Record] = r.Expr
	}
	rules := readRules(t, true)
	if len(rules) < 12 {
		t.Fatalf("%d alerts, want twelve", len(rules))
	}
	for _, r := range rules {
		_, after, found := strings.Cut(page, "\n## "+r.Alert+"\n")
		if !found {
			t.Errorf("%s: docs/operating/alerts.md has no such section", r.Alert)
		}
		section, _, _ := strings.Cut(after, "\n## ")
		if want := "docs/operating/alerts.md#" + strings.ToLower(r.Alert); r.Annotations["runbook"] != want {
			t.Errorf("%s: runbook %q, want %q", r.Alert, r.Annotations["runbook"], want)
		}
		if !strings.Contains(kinds, `"`+r.Alert+`"`) && !strings.Contains(section, "Prometheus alone raises it") {
			t.Errorf("%s: no event has that name, and its section does not say so", r.Alert)
		}
		for _, name := range regexp.MustCompile(`quorlease:[a-z0-9_:]+`).FindAllString(r.Expr, -1) {
			if recorded[name] == "" {
				t.Errorf("%s: nothing records %s", r.Alert, name)
			}
			r.Expr += " " + recorded[name]
		}
		for _, metric := range regexp.MustCompile(`quorlease_[a-z_]+`).FindAllString(r.Expr, -1) {
			if !strings.Contains(exported, `"`+metric+`"`) {
				t.Errorf("%s: nobody exports %s", r.Alert, metric)
			}
		}
	}
}

// TestEveryEventHasASection in the page of alerts.
func TestEveryEventHasASection(t *testing.T) {
	page := string(read(t, "../docs/operating/alerts.md"))
	kinds := regexp.MustCompile(`Kind += "(\w+)"`).FindAllStringSubmatch(string(read(t, "../cluster/events/event.go")), -1)
	if len(kinds) == 0 {
		t.Fatal("found no kind of event")
	}
	for _, kind := range kinds {
		if !strings.Contains(page, "\n## "+kind[1]+"\n") {
			t.Errorf("docs/operating/alerts.md has no section %s", kind[1])
		}
	}
}

// sources joins the text of every hand-written Go file under the folders.
func sources(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") ||
				strings.HasSuffix(name, ".pb.go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			all.Write(read(t, name))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
