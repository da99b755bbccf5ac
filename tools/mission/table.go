package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	// described is a row of docs/mission.md: its id and what it asks.
	described = regexp.MustCompile(`(?m)^\| (S[1-3]-\d\d) \| ([^|]*) \|`)
	words     = regexp.MustCompile(`[A-Za-z0-9-]+`)
	whole     = regexp.MustCompile(`^S[1-3]-\d\d$`)
)

// settled is a test that carries a row's id in its name or in that of a subtest.
type settled struct{ file, test string }

// table is the page: each row with the tests that settle it.
func table(root string) (string, error) {
	asked, err := os.ReadFile(filepath.Join(root, "docs/mission.md"))
	if err != nil {
		return "", fmt.Errorf("read rows: %w", err)
	}
	tests, err := tests(root)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Which test settles which row\n\nWritten by `make mission-table` from the names of the tests and " +
		"[the rows](../mission.md). `make mission` takes away the mechanism behind ten of\nthem, drawn by a seed, and " +
		"wants a test of each to fail.\n\n| row | what is asked | tests |\n|---|---|---|\n")
	for _, row := range described.FindAllStringSubmatch(string(asked), -1) {
		var links []string
		for _, s := range tests[row[1]] {
			links = append(links, fmt.Sprintf("[%s](../../%s)", s.test, s.file))
		}
		if len(links) == 0 {
			return "", fmt.Errorf("no test has %s in its name", row[1])
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row[1], row[2], strings.Join(links, ", "))
	}
	return b.String(), nil
}

// tests finds the tests by the rows that their names carry, in the order of files.
func tests(root string) (map[string][]settled, error) {
	found := make(map[string][]settled)
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		}
		file, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && file == filepath.Join("tools", "tidy"):
			return fs.SkipDir
		case strings.Contains(file, "testdata"+string(filepath.Separator)):
			for _, row := range rowsIn(entry.Name()) {
				found[row] = append(found[row], settled{filepath.ToSlash(file), entry.Name()})
			}
		case strings.HasSuffix(name, "_test.go"):
			return addTests(found, name, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for tests: %w", err)
	}
	return found, nil
}

func addTests(found map[string][]settled, name, file string) error {
	syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		return fmt.Errorf("parse test: %w", err)
	}
	for _, declared := range syntax.Decls {
		title := ""
		if function, ok := declared.(*ast.FuncDecl); ok {
			title = function.Name.Name
		}
		ast.Inspect(declared, func(node ast.Node) bool {
			text, ok := node.(*ast.BasicLit)
			// A message has a verb in it; a name has none.
			if !ok || text.Kind != token.STRING || strings.Contains(text.Value, "%") {
				return true
			}
			for _, row := range rowsIn(text.Value) {
				one := settled{file, title}
				if title == "" || !strings.HasPrefix(title, "Test") {
					one.test = strings.TrimSuffix(filepath.Base(file), "_test.go")
				}
				if !slices.Contains(found[row], one) {
					found[row] = append(found[row], one)
				}
			}
			return true
		})
	}
	return nil
}

// rowsIn are the ids that are whole words of a name, where an underscore ends a
// word too.
func rowsIn(name string) (rows []string) {
	for _, word := range words.FindAllString(name, -1) {
		if whole.MatchString(word) {
			rows = append(rows, word)
		}
	}
	return rows
}
