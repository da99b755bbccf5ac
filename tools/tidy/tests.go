package tidy

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

func testRules() []Rule {
	return []Rule{
		{"sleep", "wait for a condition, or use a synctest bubble: a sleep is luck", checkSleep},
		{"skip", "a skipped test is a claim that nothing checked: it names what is missing", checkSkip},
	}
}

// packageCall says whether call is pkg.name(…), by the file's own imports, so
// that an alias hides nothing and a variable of that name is no hit.
func packageCall(f *GoFile, call *ast.CallExpr, importPath string) (name string, ok bool) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	return packageSelector(f, selector, importPath)
}

func packageSelector(f *GoFile, selector *ast.SelectorExpr, importPath string) (name string, ok bool) {
	qualifier, ok := selector.X.(*ast.Ident)
	if !ok || qualifier.Name != importName(f, importPath) {
		return "", false
	}
	return selector.Sel.Name, true
}

// importName is the name under which a file imports a path, "" if it does not.
func importName(f *GoFile, importPath string) string {
	for _, spec := range f.Syntax.Imports {
		value, err := strconv.Unquote(spec.Path.Value)
		if err != nil || value != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return value[strings.LastIndex(value, "/")+1:]
	}
	return ""
}

func checkSleep(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				if name, ok := packageSelector(f, selector, "time"); ok && name == "Sleep" {
					found = append(found, t.at(f, node.Pos(), "time.Sleep"))
				}
			}
			return true
		})
	}
	return found
}

// checkSkip looks for Skip on the usual receivers of tests. The message must be
// a literal that says something; SkipNow says nothing.
func checkSkip(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			receiver, ok := selector.X.(*ast.Ident)
			if !ok || !strings.Contains(" t tb b f ", " "+receiver.Name+" ") {
				return true
			}
			switch selector.Sel.Name {
			case "SkipNow":
				found = append(found, t.at(f, call.Pos(), "SkipNow names nothing"))
			case "Skip", "Skipf":
				if len(call.Args) == 0 || !says(call.Args[0]) {
					found = append(found, t.at(f, call.Pos(), "%s does not name what is missing", selector.Sel.Name))
				}
			}
			return true
		})
	}
	return found
}

// says is true of a string literal (or the beginning of a sum of them) with at
// least two words.
func says(expr ast.Expr) bool {
	if sum, ok := expr.(*ast.BinaryExpr); ok {
		return says(sum.X)
	}
	literal, ok := expr.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING && len(strings.Fields(literal.Value)) >= 2
}
