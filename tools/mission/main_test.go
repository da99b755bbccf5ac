package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a small checkout with one row and what tests it.
func tree(t *testing.T, test string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.com/rows\n\ngo 1.26\n",
		"docs/mission.md": "| row | what is asked | how |\n|---|---|---|\n| S1-19 | At most three. | By a rule. |\n",
		"most/most.go":    "package most\n\nfunc Passes(n int) bool { return n <= 3 }\n",
		"most/most_test.go": "package most\n\nimport \"testing\"\n\nfunc TestMost(t *testing.T) {\n" +
			"\tt.Run(\"" + test + "\", func(t *testing.T) {\n\t\tif Passes(4) {\n\t\t\tt.Error(\"4\")\n\t\t}\n\t})\n}\n",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestTable(t *testing.T) {
	t.Parallel()
	got, err := table(tree(t, "S1-19_four"))
	want := "| S1-19 | At most three. | [TestMost](../../most/most_test.go) |"
	if err != nil || !strings.Contains(got, want) {
		t.Errorf("%v, %q; want a line %q", err, got, want)
	}
	if _, err := table(tree(t, "S1-190")); err == nil {
		t.Error("a row without a test passed")
	}
}

// TestBreaking: a mechanism whose test notices, and three that nobody would miss.
func TestBreaking(t *testing.T) {
	t.Parallel()
	root := tree(t, "S1-19_four")
	good := mechanism{row: "S1-19", file: "most/most.go", tests: "most", text: "n <= 3", without: "true"}
	if err := good.broken(t.Context(), root); err != nil {
		t.Errorf("the test did not notice: %v", err)
	}
	for name, change := range map[string]func(*mechanism){
		"nothing is missing":     func(m *mechanism) { m.without = "n < 4" },
		"text that is not there": func(m *mechanism) { m.text = "n <= 5" },
		"does not build":         func(m *mechanism) { m.without = "maybe" },
		"no test":                func(m *mechanism) { m.row = "S1-20" },
	} {
		bad := good
		change(&bad)
		if err := bad.broken(t.Context(), root); err == nil {
			t.Errorf("%s: passed", name)
		}
	}
}

// TestThePageIsTrue: the page in the tree is what the tests say.
func TestThePageIsTrue(t *testing.T) {
	t.Parallel()
	if err := checkTable("../.."); err != nil {
		t.Error(err)
	}
}

// TestEveryMechanismIsThere: each is where it is said to be, so that breaking it
// says something.
func TestEveryMechanismIsThere(t *testing.T) {
	t.Parallel()
	for _, m := range mechanisms {
		if _, err := m.overlay("../..", t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.row, err)
		}
	}
}
