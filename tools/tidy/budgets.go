package tidy

import (
	"fmt"
	"go/ast"
	"strings"
	"unicode/utf8"
)

// The stop column of STYLE.md. No list of exceptions exists, so none can grow.
const (
	maxFunctionLines     = 70
	maxTestFunctionLines = 100
	maxFileLines         = 400
	maxPackageLines      = 2500
	maxColumns           = 120
	maxParameters        = 5
	maxResults           = 3
	maxInterfaceMethods  = 5
)

func budgetRules() []Rule {
	return []Rule{
		{"function-length", "a function fits the screen", checkFunctionLength},
		{"signature", "more parameters are a struct, more results too", checkSignatures},
		{"interface-size", "the caller declares what it calls, and no more", checkInterfaces},
		{"file-length", "a file is one thing", checkFileLength},
		{"package-length", "a package is read in one sitting", checkPackageLength},
		{"line-length", "two files fit beside one another", checkLineLength},
	}
}

func checkFunctionLength(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		limit := maxFunctionLines
		if f.Test() {
			limit = maxTestFunctionLines
		}
		for _, decl := range f.Syntax.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := t.line(function.End()) - t.line(function.Pos()) + 1; lines > limit {
				found = append(found, t.at(f, function.Pos(), "%s has %d lines, at most %d",
					function.Name.Name, lines, limit))
			}
		}
	}
	return found
}

func checkSignatures(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			if decl, ok := node.(*ast.FuncDecl); ok && isGiven(f, decl) {
				return false
			}
			signature, ok := node.(*ast.FuncType)
			if !ok || isInterceptor(f, signature) {
				return true
			}
			if n := signature.Params.NumFields(); n > maxParameters {
				found = append(found, t.at(f, signature.Pos(), "%d parameters, at most %d", n, maxParameters))
			}
			if n := signature.Results.NumFields(); n > maxResults {
				found = append(found, t.at(f, signature.Pos(), "%d results, at most %d", n, maxResults))
			}
			return true
		})
	}
	return found
}

// isInterceptor says whether a function has the shape that gRPC wants of an
// interceptor of clients: it takes what goes on with the call.
func isInterceptor(f *GoFile, signature *ast.FuncType) bool {
	for _, parameter := range signature.Params.List {
		selector, ok := parameter.Type.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		name, ok := packageSelector(f, selector, "google.golang.org/grpc")
		if ok && (name == "UnaryInvoker" || name == "Streamer") {
			return true
		}
	}
	return false
}

func checkInterfaces(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			if i, ok := node.(*ast.InterfaceType); ok && i.Methods.NumFields() > maxInterfaceMethods {
				found = append(found, t.at(f, i.Pos(), "an interface of %d methods, at most %d",
					i.Methods.NumFields(), maxInterfaceMethods))
			}
			return true
		})
	}
	return found
}

func lines(source string) int { return strings.Count(strings.TrimSuffix(source, "\n"), "\n") + 1 }

func checkFileLength(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		if n := lines(f.Source); n > maxFileLines {
			found = append(found, Violation{f.Path, 0, fmt.Sprintf("%d lines, at most %d", n, maxFileLines)})
		}
	}
	return found
}

func checkPackageLength(t *Tree) (found []Violation) {
	total := make(map[string]int)
	for _, f := range t.Go {
		if !f.Test() {
			total[f.Dir()] += lines(f.Source)
		}
	}
	for dir, n := range total {
		if n > maxPackageLines {
			what := fmt.Sprintf("%d lines without tests, at most %d", n, maxPackageLines)
			found = append(found, Violation{dir, 0, what})
		}
	}
	return sorted(found)
}

func checkLineLength(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		for i, line := range strings.Split(f.Source, "\n") {
			// A tab is one column, as in lll.
			if columns := utf8.RuneCountInString(line); columns > maxColumns {
				what := fmt.Sprintf("%d columns, at most %d", columns, maxColumns)
				found = append(found, Violation{f.Path, i + 1, what})
			}
		}
	}
	return found
}
