package tidy

import (
	"go/ast"
	"go/types"
	"strings"
)

const (
	raftPath       = "github.com/hashicorp/raft"
	statusPath     = "google.golang.org/grpc/status"
	errdetailsPath = "google.golang.org/genproto/googleapis/rpc/errdetails"
	hclogPath      = "github.com/hashicorp/go-hclog"
)

// callRules keep what is dangerous in one place each.
func callRules() []Rule {
	return []Rule{
		{"raft-apply", "one place stamps, encodes and proposes: cluster/propose.go", checkRaftApply},
		{"status", "one table says what an error means on the wire: api/server/errors.go", checkStatus},
		{"global-log", "loggers are injected: two nodes in one process tell theirs apart", checkGlobalLog},
		{"exit", "main is a shell: only a main package ends the process", checkExit},
	}
}

// checkRaftApply finds calls whose result is raft.ApplyFuture, through whatever
// interface they are made. In tests, which are not type-checked here, a method
// Apply on something called raft counts.
func checkRaftApply(t *Tree) (found []Violation) {
	imports := func(f *GoFile) bool { return importName(f, raftPath) != "" }
	for _, dir := range t.dirs(func(f *GoFile) bool { return imports(f) && !f.Test() }) {
		checked := t.check(dir)
		for _, f := range checked.files {
			if f.Path == "cluster/propose.go" {
				continue
			}
			ast.Inspect(f.Syntax, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				if ok && isApplyFuture(checked.info.Types[call].Type) {
					found = append(found, t.at(f, call.Pos(), "calls %s", types.ExprString(call.Fun)))
				}
				return true
			})
		}
	}
	for _, f := range t.Go {
		if f.Test() && imports(f) {
			found = append(found, testRaftApply(t, f)...)
		}
	}
	return sorted(found)
}

func isApplyFuture(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return false
	}
	return named.Obj().Pkg().Path() == raftPath && named.Obj().Name() == "ApplyFuture"
}

func testRaftApply(t *Tree, f *GoFile) (found []Violation) {
	ast.Inspect(f.Syntax, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != "Apply" && selector.Sel.Name != "ApplyLog" {
			return true
		}
		receiver := strings.ToLower(types.ExprString(selector.X))
		if receiver == "raft" || strings.HasSuffix(receiver, ".raft") {
			found = append(found, t.at(f, call.Pos(), "calls %s", types.ExprString(call.Fun)))
		}
		return true
	})
	return found
}

// wireErrors are the files with a table of errors each: that of nodes, and that of
// servers whose calls are refused by an interceptor.
var wireErrors = map[string]bool{"api/server/errors.go": true, "client/grpcmw/status.go": true}

// checkStatus lets tests build what they compare with, and everybody read what
// arrived.
func checkStatus(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		if f.Test() || wireErrors[f.Path] {
			continue
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CallExpr:
				switch name, _ := packageCall(f, node, statusPath); name {
				case "New", "Newf", "Error", "Errorf":
					found = append(found, t.at(f, node.Pos(), "builds a status: status.%s", name))
				}
			case *ast.CompositeLit:
				if selector, ok := node.Type.(*ast.SelectorExpr); ok {
					if name, ok := packageSelector(f, selector, errdetailsPath); ok {
						found = append(found, t.at(f, node.Pos(), "builds a detail: errdetails.%s", name))
					}
				}
			}
			return true
		})
	}
	return found
}

func checkGlobalLog(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		if importName(f, "log") != "" {
			found = append(found, t.at(f, f.Syntax.Name.Pos(), "imports log"))
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				switch name, _ := hclogSelector(f, selector); name {
				case "Default", "L", "SetDefault":
					found = append(found, t.at(f, node.Pos(), "hclog.%s", name))
				}
			}
			return true
		})
	}
	return found
}

// hclogSelector knows that the package go-hclog is named hclog.
func hclogSelector(f *GoFile, selector *ast.SelectorExpr) (string, bool) {
	qualifier, ok := selector.X.(*ast.Ident)
	name := importName(f, hclogPath)
	if !ok || name == "" || qualifier.Name != name && "go-"+qualifier.Name != name {
		return "", false
	}
	return selector.Sel.Name, true
}

func checkExit(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		if f.Test() || f.Syntax.Name.Name == "main" {
			continue
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				if name, _ := packageCall(f, call, "os"); name == "Exit" {
					found = append(found, t.at(f, call.Pos(), "os.Exit"))
				}
			}
			return true
		})
	}
	return found
}
