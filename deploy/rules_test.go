package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func readRules(t *testing.T) (rules []rule) {
	t.Helper()
	var file rulesFile
	if err := yaml.UnmarshalWithOptions(read(t, "prometheus/rules.yml"), &file, yaml.Strict()); err != nil {
		t.Fatalf("rules.yml: %s", yaml.FormatError(err, false, true))
	}
	for _, group := range file.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

// TestRules runs the rules' own tests with Prometheus's own tool.
func TestRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus): the alert rules' own tests did not run")
	}
	for _, args := range [][]string{
		{"check", "rules", "rules.yml"},
		{"check", "config", "prometheus.yml"},
		{"test", "rules", "rules_test.yml"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			command := exec.CommandContext(t.Context(), promtool, args...)
			command.Dir = "prometheus"
			if output, err := command.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

// TestRulesCanFail moves each bound and wants the rules' tests to notice.
func TestRulesCanFail(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus): the alert rules' own tests did not run")
	}
	for _, change := range [][2]string{
		{"has_quorum == 0", "has_quorum == 1"},
		{"> 250", "> 249"},
		{"> 250", "> 251"},
		{"for: 10s", "for: 5s"},
		{"for: 5s", "for: 0s"},
		{"1.5 *", "1.6 *"},
		{"1.5 *", "1.4 *"},
		{"keys_blocked > 0", "keys_blocked > 1"},
	} {
		t.Run(change[0]+" to "+change[1], func(t *testing.T) {
			dir := t.TempDir()
			rules := string(read(t, "prometheus/rules.yml"))
			changed := strings.ReplaceAll(rules, change[0], change[1])
			if changed == rules {
				t.Fatalf("rules.yml has no %q", change[0])
			}
			write(t, filepath.Join(dir, "rules.yml"), []byte(changed))
			write(t, filepath.Join(dir, "rules_test.yml"), read(t, "prometheus/rules_test.yml"))
			command := exec.CommandContext(t.Context(), promtool, "test", "rules", "rules_test.yml")
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

// TestAlertmanagerConfig checks the example with Alertmanager's own tool.
func TestAlertmanagerConfig(t *testing.T) {
	amtool, err := exec.LookPath("amtool")
	if err != nil {
		t.Skip("amtool is not installed (Debian: prometheus-alertmanager): the example configuration was not checked")
	}
	command := exec.CommandContext(t.Context(), amtool, "check-config", "prometheus/alertmanager.yml")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestAlertsHaveAPageAndAMetric: an alert that nobody can look up, or over a
// metric that no node exports, is worse than none.
func TestAlertsHaveAPageAndAMetric(t *testing.T) {
	page := string(read(t, "../docs/operating/alerts.md"))
	kinds := string(read(t, "../cluster/events/event.go"))
	exported := sources(t, "../cluster", "../api")
	rules := readRules(t)
	if len(rules) < 3 {
		t.Fatalf("%d rules, want no quorum, follower lag and disk", len(rules))
	}
	for _, r := range rules {
		if !strings.Contains(page, "\n## "+r.Alert+"\n") {
			t.Errorf("%s: docs/operating/alerts.md has no such section", r.Alert)
		}
		if want := "docs/operating/alerts.md#" + strings.ToLower(r.Alert); r.Annotations["runbook"] != want {
			t.Errorf("%s: runbook %q, want %q", r.Alert, r.Annotations["runbook"], want)
		}
		if !strings.Contains(kinds, `"`+r.Alert+`"`) {
			t.Errorf("%s: no event has that name", r.Alert)
		}
		for _, metric := range regexp.MustCompile(`quorlease_[a-z_]+`).FindAllString(r.Expr, -1) {
			if !strings.Contains(exported, `"`+metric+`"`) {
				t.Errorf("%s: no node exports %s", r.Alert, metric)
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
