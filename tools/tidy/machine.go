package tidy

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// machineRules keep the state machine a function of its log (G9). They hold for
// fsm and everything below it except the support for tests.
func machineRules() []Rule {
	return []Rule{
		{"machine-clock", "G9: the leader stamps time, the log carries it, the machine obeys", checkMachineClock},
		{"machine-goroutine", "G9: one caller, one order; a goroutine or lock would be a second", checkMachineThreads},
		{"machine-float", "G9: an architecture may fuse x*y+z and another not; integers agree", checkMachineFloats},
		{"machine-map-order", "G9: map order differs every time: a comment says why it can't show", checkMachineMaps},
	}
}

// inMachine says whether the state machine is made of this file.
func inMachine(f *GoFile) bool {
	return !f.Test() && under(f.Path, "fsm") && !under(f.Path, "fsm/fsmtest")
}

// clocks are the names of package time that read or wait for a clock.
var clocks = map[string]bool{
	"Now": true, "Since": true, "Until": true, "After": true, "AfterFunc": true,
	"Tick": true, "NewTimer": true, "NewTicker": true, "Sleep": true,
	// A zone database is this machine's own.
	"LoadLocation": true, "Local": true,
}

func checkMachineClock(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		if !inMachine(f) {
			continue
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				if name, ok := packageSelector(f, selector, "time"); ok && clocks[name] {
					found = append(found, t.at(f, node.Pos(), "time.%s", name))
				}
			}
			return true
		})
	}
	return found
}

func checkMachineThreads(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		if !inMachine(f) {
			continue
		}
		for _, path := range []string{"sync", "sync/atomic"} {
			if importName(f, path) != "" {
				found = append(found, t.at(f, f.Syntax.Name.Pos(), "imports %s", path))
			}
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			switch node.(type) {
			case *ast.GoStmt:
				found = append(found, t.at(f, node.Pos(), "go statement"))
			case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
				found = append(found, t.at(f, node.Pos(), "channel"))
			}
			return true
		})
	}
	return found
}

// checkMachineFloats asks the type checker, since x.Seconds() is a float that
// does not look like one. One violation a line is enough.
func checkMachineFloats(t *Tree) (found []Violation) {
	for _, dir := range t.dirs(inMachine) {
		checked := t.check(dir)
		for _, f := range checked.files {
			last := 0
			ast.Inspect(f.Syntax, func(node ast.Node) bool {
				expr, ok := node.(ast.Expr)
				if !ok || t.line(expr.Pos()) == last {
					return true
				}
				if isFloat(checked.info.Types[expr].Type) {
					last = t.line(expr.Pos())
					found = append(found, t.at(f, expr.Pos(), "floating point: %s", types.ExprString(expr)))
				}
				return true
			})
		}
	}
	return found
}

func isFloat(t types.Type) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsFloat|types.IsComplex) != 0
}

// checkMachineMaps accepts a range over a map, or an iterator over one, where a
// comment on the line or directly above has the word "order", or the iterator is
// sorted on the spot.
func checkMachineMaps(t *Tree) (found []Violation) {
	for _, dir := range t.dirs(inMachine) {
		checked := t.check(dir)
		for _, f := range checked.files {
			ast.Inspect(f.Syntax, func(node ast.Node) bool {
				if call, ok := node.(*ast.CallExpr); ok && isSorted(f, call) {
					return false
				}
				if what := walksMap(checked, f, node); what != "" && !t.saysOrder(f, node.Pos()) {
					found = append(found, t.at(f, node.Pos(), "%s", what))
				}
				return true
			})
		}
	}
	return found
}

func walksMap(checked typed, f *GoFile, node ast.Node) string {
	switch node := node.(type) {
	case *ast.RangeStmt:
		if isMap(checked.info.Types[node.X].Type) {
			return "range over map " + types.ExprString(node.X)
		}
	case *ast.CallExpr:
		switch name, _ := packageCall(f, node, "maps"); name {
		case "Keys", "Values", "All":
			return "maps." + name
		}
	}
	return ""
}

func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

func isSorted(f *GoFile, call *ast.CallExpr) bool {
	name, ok := packageCall(f, call, "slices")
	return ok && strings.HasPrefix(name, "Sorted")
}

// saysOrder looks for the word in a comment on the position's line, or in one
// that ends on the line before.
func (t *Tree) saysOrder(f *GoFile, pos token.Pos) bool {
	line := t.line(pos)
	for _, group := range f.Syntax.Comments {
		near := t.line(group.Pos()) == line || t.line(group.End()) == line-1
		if near && strings.Contains(group.Text(), "order") {
			return true
		}
	}
	return false
}
