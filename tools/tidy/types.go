package tidy

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/types"
	"io"
	"path"
	"strings"
)

// Lookup opens the export data of the package with the import path given.
type Lookup func(importPath string) (io.ReadCloser, error)

// typed is one package without its tests, with what the type checker says of
// every expression in it.
type typed struct {
	files []*GoFile
	info  *types.Info
}

// check runs the type checker over the folder's files that this machine
// builds. What can't be resolved is left untyped: the compiler, not this, says
// what is wrong with it.
func (t *Tree) check(dir string) typed {
	checked := typed{info: &types.Info{
		Types:      make(map[ast.Expr]types.TypeAndValue),
		Uses:       make(map[*ast.Ident]types.Object),
		Selections: make(map[*ast.SelectorExpr]*types.Selection),
	}}
	var syntax []*ast.File
	for _, f := range t.Go {
		if f.Dir() == dir && !f.Test() && t.built(f) {
			checked.files = append(checked.files, f)
			syntax = append(syntax, f.Syntax)
		}
	}
	config := types.Config{
		Importer: importer.ForCompiler(t.Set, "gc", importer.Lookup(t.Importer)),
		Error:    func(error) {},
	}
	if t.Importer == nil {
		config.Importer = importer.Default()
	}
	// The error is the first of those that Error was given.
	_, _ = config.Check(path.Join(Module, dir), t.Set, syntax, checked.info)
	return checked
}

// built says whether build constraints include the file on this machine.
func (t *Tree) built(f *GoFile) bool {
	context := build.Default
	context.OpenFile = func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(f.Source)), nil
	}
	match, err := context.MatchFile(f.Dir(), path.Base(f.Path))
	return match && err == nil
}

// dirs returns the folders that hold Go files for which keep is true.
func (t *Tree) dirs(keep func(*GoFile) bool) (found []string) {
	seen := make(map[string]bool)
	for _, f := range t.Go {
		if keep(f) && !seen[f.Dir()] {
			seen[f.Dir()] = true
			found = append(found, f.Dir())
		}
	}
	return found
}
