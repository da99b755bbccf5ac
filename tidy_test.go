package quorlease_test

import (
	"testing"

	"github.com/quorlease/quorlease/tools/tidy"
)

// TestTidy holds the project to the rules of the house (STYLE.md). What a rule
// catches is shown by the seeded violations in tools/tidy/testdata.
func TestTidy(t *testing.T) {
	tree, err := tidy.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	graph, err := tidy.List(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	tree.Importer = graph.Open
	for _, rule := range tidy.Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			report(t, rule.Why, rule.Check(tree))
		})
	}
	for _, rule := range tidy.ImportRules() {
		t.Run("import-"+rule.Name, func(t *testing.T) {
			found, bound := graph.CheckImports(rule)
			if bound == 0 {
				t.Errorf("binds no package: %v do not exist", rule.Of)
			}
			report(t, rule.Why, found)
		})
	}
}

func report(t *testing.T, why string, found []tidy.Violation) {
	t.Helper()
	for _, v := range found {
		t.Errorf("%s", v)
	}
	if len(found) > 0 {
		t.Errorf("why: %s", why)
	}
}
