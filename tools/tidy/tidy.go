// Package tidy holds the rules of the house as functions over the source tree:
// import directions, what the state machine may not do, budgets, words, and ids
// that must mean something to a reader.
//
// The test in the module's root runs every rule over the project. The tests here
// run every rule over small sources with seeded violations, so that a rule that
// stopped catching anything is itself caught.
package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// Module is the import path that every package of the project begins with.
const Module = "github.com/quorlease/quorlease"

// Violation is one place that breaks a rule.
type Violation struct {
	// File is relative to the tree's root, with slashes.
	File string
	// Line is 0 where the whole file (or package) is meant.
	Line int
	// What says what is wrong there, with the numbers.
	What string
}

func (v Violation) String() string { return fmt.Sprintf("%s:%d: %s", v.File, v.Line, v.What) }

// Rule is one rule of the house.
type Rule struct {
	Name string
	// Why is the reason, printed under the violations.
	Why   string
	Check func(*Tree) []Violation
}

// Rules returns every rule that needs nothing but the tree, in the order of the
// files they are written in.
func Rules() []Rule {
	var all []Rule
	for _, group := range [][]Rule{budgetRules(), wordRules(), testRules(), machineRules(), callRules(), docRules()} {
		all = append(all, group...)
	}
	return all
}

// Tree is the project's source: what people wrote, not what was generated.
type Tree struct {
	Root string
	Set  *token.FileSet
	// Go holds every hand-written Go file, tests included, ordered by path.
	Go []*GoFile
	// Text holds every other text file that is shown to a reader: Markdown,
	// YAML, scripts, .proto files; by path.
	Text map[string]string
	// Importer finds the export data of a package by its import path. Rules that
	// need types use it; nil makes them look at syntax only.
	Importer Lookup
}

// GoFile is one parsed Go file.
type GoFile struct {
	// Path is relative to the root, with slashes.
	Path   string
	Source string
	Syntax *ast.File
}

// Test says whether the file is compiled into tests only.
func (f *GoFile) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Dir is the folder, "." for the root.
func (f *GoFile) Dir() string { return path.Dir(f.Path) }

// Load reads the tree under root. Generated Go code, testdata's Go files, what
// git ignores by convention here (.tools) and the .git folder are left out.
func Load(root string) (*Tree, error) {
	tree := &Tree{Root: root, Set: token.NewFileSet(), Text: make(map[string]string)}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if entry.IsDir() {
			if entry.Name() == ".git" || entry.Name() == ".tools" {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || !wanted(relative) {
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return tree.Add(relative, string(source))
	})
	return tree, err
}

// wanted says whether a file is one that the rules look at.
func wanted(name string) bool {
	if strings.HasSuffix(name, ".pb.go") {
		return false
	}
	switch path.Ext(name) {
	case ".go", ".md", ".yaml", ".yml", ".proto", ".sh", ".txtar", ".txt":
		return true
	}
	switch path.Base(name) {
	case "Makefile", "Dockerfile", "run":
		return true
	}
	return false
}

// Add puts one file into the tree. A Go file must parse, except in testdata,
// where it is data.
func (t *Tree) Add(name, source string) error {
	if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
		t.Text[name] = source
		return nil
	}
	syntax, err := parser.ParseFile(t.Set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse Go file: %w", err)
	}
	t.Go = append(t.Go, &GoFile{Path: name, Source: source, Syntax: syntax})
	return nil
}

// line is the line of a position.
func (t *Tree) line(pos token.Pos) int { return t.Set.Position(pos).Line }

// at makes a violation at a position of a file.
func (t *Tree) at(f *GoFile, pos token.Pos, format string, args ...any) Violation {
	return Violation{File: f.Path, Line: t.line(pos), What: fmt.Sprintf(format, args...)}
}

// comments calls look with every comment of the project's code.
func (t *Tree) comments(look func(f *GoFile, comment *ast.Comment)) {
	for _, f := range t.Go {
		if exempt(f.Path) {
			continue
		}
		for _, group := range f.Syntax.Comments {
			for _, comment := range group.List {
				look(f, comment)
			}
		}
	}
}

// under says whether a path lies in a folder or is it.
func under(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// sorted orders violations by place.
func sorted(all []Violation) []Violation {
	sort.SliceStable(all, func(i, j int) bool {
		if all[i].File != all[j].File {
			return all[i].File < all[j].File
		}
		return all[i].Line < all[j].Line
	})
	return all
}
