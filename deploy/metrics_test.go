package deploy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMetricsPage: the reference lists what nodes and clients export, and
// nothing else.
func TestMetricsPage(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `(quorlease_[a-z_]+)` \\|")
	page := string(read(t, "../docs/reference/metrics.md"))
	listed := names(rows, page)
	code := sources(t, "../cluster", "../api", "../client", "../cmd")
	exported := slices.DeleteFunc(names(regexp.MustCompile(`"(quorlease_[a-z_]+)"`), code),
		// The libraries' collectors have names of their own; they are no series.
		func(name string) bool { return strings.HasSuffix(name, "_sink") })
	if len(exported) < 10 {
		t.Fatalf("found only %q", exported)
	}
	if !slices.Equal(listed, exported) {
		t.Errorf("docs/reference/metrics.md lists\n%q\nthey export\n%q", listed, exported)
	}
}

// names are the distinct first groups of all matches, sorted.
func names(pattern *regexp.Regexp, text string) (found []string) {
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}
