package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// docRules keep what is written down true of what is there.
func docRules() []Rule {
	return []Rule{
		{"cited-ids", "an id in a test or comment is described where a reader finds it", checkCitedIDs},
		{"untested-ids", "a described case has a test, or says what it comes with", checkUntestedIDs},
		{"links", "a link in the documentation leads somewhere", checkLinks},
		{"symbols", "a design note names what the code really has", checkSymbols},
	}
}

// family is one kind of id: where it is described.
type family struct {
	letter string
	page   string
}

var families = []family{
	{"A", "docs/cases.md"},
	{"G", "docs/guarantees.md"},
	{"R", "docs/design/raft-rules.md"},
	{"S", "docs/mission.md"},
	{"T", "docs/traps.md"},
}

// In running text an id is a whole word: A07, G3, R12, T51, S1-19. In a test's
// name it may be followed by an underscore or a capital letter.
const id = `(A[0-2]\d|G\d{1,2}|R\d{1,2}|S[1-3]-\d\d|T\d{1,2})`

var (
	idPattern    = regexp.MustCompile(`\b` + id + `\b`)
	testName     = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark)` + id + `(?:[A-Z_].*)?$`)
	wholeID      = regexp.MustCompile(`^` + id + `$`)
	wordsPattern = regexp.MustCompile(`[A-Za-z0-9-]+`)
	idDefinition = regexp.MustCompile(`(?m)^(?:#{1,5} +|\| *)\**` + id + `\b(.*)$`)
)

// citation is one id with its place.
type citation struct {
	id    string
	where Violation
	// settles: the id is in the name of a test, not only in a comment.
	settles bool
}

// citations collects the ids in comments, in the names of tests and subtests,
// and in the names of test scripts.
func (t *Tree) citations() (found []citation) {
	for _, f := range t.Go {
		if exempt(f.Path) {
			continue
		}
		for _, group := range f.Syntax.Comments {
			for _, id := range idPattern.FindAllString(group.Text(), -1) {
				found = append(found, citation{id, t.at(f, group.Pos(), ""), false})
			}
		}
		if f.Test() {
			found = append(found, t.testNames(f)...)
		}
	}
	for name := range t.Text {
		if strings.Contains(name, "testdata/") && !exempt(name) {
			for _, cited := range idsIn(path.Base(name)) {
				found = append(found, citation{cited, Violation{File: name}, true})
			}
		}
	}
	return found
}

// idsIn are the ids that are whole words of a name, where an underscore ends a
// word too.
func idsIn(name string) (ids []string) {
	for _, word := range wordsPattern.FindAllString(name, -1) {
		if wholeID.MatchString(word) {
			ids = append(ids, word)
		}
	}
	return ids
}

func (t *Tree) testNames(f *GoFile) (found []citation) {
	ast.Inspect(f.Syntax, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			if match := testName.FindStringSubmatch(node.Name.Name); match != nil {
				found = append(found, citation{match[1], t.at(f, node.Pos(), ""), true})
			}
		case *ast.BasicLit:
			// A message has a verb in it; a name has none.
			if node.Kind == token.STRING && !strings.Contains(node.Value, "%") {
				for _, cited := range idsIn(node.Value) {
					found = append(found, citation{cited, t.at(f, node.Pos(), ""), true})
				}
			}
		}
		return true
	})
	return found
}

// described returns the ids that the pages describe, each with the rest of its
// line.
func (t *Tree) described() map[string]string {
	ids := make(map[string]string)
	for _, kind := range families {
		for _, match := range idDefinition.FindAllStringSubmatch(t.Text[kind.page], -1) {
			if strings.HasPrefix(match[1], kind.letter) {
				ids[match[1]] = match[2]
			}
		}
	}
	return ids
}

func pageOf(id string) string {
	i := slices.IndexFunc(families, func(kind family) bool { return strings.HasPrefix(id, kind.letter) })
	return families[i].page
}

func checkCitedIDs(t *Tree) (found []Violation) {
	described := t.described()
	for _, cited := range t.citations() {
		if _, ok := described[cited.id]; !ok {
			cited.where.What = fmt.Sprintf("cites %s, which %s does not describe", cited.id, pageOf(cited.id))
			found = append(found, cited.where)
		}
	}
	return sorted(found)
}

// later marks an entry that no test settles yet, because the part that it
// speaks of is not built: the word opens a phrase that says what it comes with.
var later = regexp.MustCompile(`\bComes with\b`)

func checkUntestedIDs(t *Tree) (found []Violation) {
	settled := make(map[string]bool)
	for _, cited := range t.citations() {
		settled[cited.id] = settled[cited.id] || cited.settles
	}
	for _, kind := range families {
		// The table of Raft's rules names its tests row by row.
		if kind.letter == "R" {
			continue
		}
		page := t.Text[kind.page]
		for _, match := range idDefinition.FindAllStringSubmatchIndex(page, -1) {
			id := page[match[2]:match[3]]
			if settled[id] || later.MatchString(entryAt(page[match[0]:])) {
				continue
			}
			what := id + ": no test has it in its name, and it does not say what it comes with"
			found = append(found, Violation{kind.page, 1 + strings.Count(page[:match[0]], "\n"), what})
		}
	}
	return found
}

// entryAt is the description that begins at text: a table's row, or everything
// up to the next heading.
func entryAt(text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.HasPrefix(first, "|") {
		return first
	}
	body, _, _ := strings.Cut(rest, "\n#")
	return first + "\n" + body
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// checkLinks follows relative links to files, and links within a page or to
// another page's heading.
func checkLinks(t *Tree) (found []Violation) {
	for name, source := range t.Text {
		if path.Ext(name) != ".md" || exempt(name) {
			continue
		}
		for i, line := range strings.Split(source, "\n") {
			for _, match := range link.FindAllStringSubmatch(line, -1) {
				if what := t.follow(name, match[1]); what != "" {
					found = append(found, Violation{name, i + 1, what})
				}
			}
		}
	}
	return sorted(found)
}

func (t *Tree) follow(from, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	file, anchor, _ := strings.Cut(target, "#")
	if file == "" {
		file = from
	} else {
		file = path.Join(path.Dir(from), file)
	}
	text, known := t.Text[file]
	if !known {
		if _, err := os.Stat(filepath.Join(t.Root, filepath.FromSlash(file))); err != nil || t.Root == "" {
			return "link to " + target + ": no such file"
		}
	}
	if anchor != "" && path.Ext(file) == ".md" && !slices.Contains(anchors(text), anchor) {
		return "link to " + target + ": no such heading"
	}
	return ""
}

var (
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names that renderers give to a page's headings.
func anchors(text string) (names []string) {
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		name := notAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(match[1])), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// symbolSpan is code such as `cluster/propose.go` or
// `cluster/propose.go (*proposer).propose` in a page.
var symbolSpan = regexp.MustCompile("`([a-z][a-zA-Z0-9_/]*\\.go)(?: ([^`]+))?`")

func checkSymbols(t *Tree) (found []Violation) {
	declared := make(map[string]map[string]bool)
	for _, f := range t.Go {
		declared[f.Path] = declarations(f)
	}
	for name, source := range t.Text {
		if path.Ext(name) != ".md" || exempt(name) {
			continue
		}
		for i, line := range strings.Split(source, "\n") {
			for _, match := range symbolSpan.FindAllStringSubmatch(line, -1) {
				if !strings.Contains(match[1], "/") {
					continue
				}
				names, ok := declared[match[1]]
				switch {
				case !ok && !strings.HasSuffix(match[1], ".pb.go"):
					found = append(found, Violation{name, i + 1, "names " + match[1] + ", which does not exist"})
				case ok && match[2] != "" && !names[strings.TrimSuffix(match[2], "()")]:
					found = append(found, Violation{name, i + 1, match[1] + " declares no " + match[2]})
				}
			}
		}
	}
	return sorted(found)
}

// declarations are a file's top-level names; methods as (T).M or (*T).M.
func declarations(f *GoFile) map[string]bool {
	names := make(map[string]bool)
	for _, decl := range f.Syntax.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			names[receiver(decl)+decl.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names[name.Name] = true
					}
				}
			}
		}
	}
	return names
}

func receiver(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return ""
	}
	expr, star := decl.Recv.List[0].Type, ""
	if pointer, ok := expr.(*ast.StarExpr); ok {
		expr, star = pointer.X, "*"
	}
	if index, ok := expr.(*ast.IndexExpr); ok {
		expr = index.X
	}
	if name, ok := expr.(*ast.Ident); ok {
		return "(" + star + name.Name + ")."
	}
	return ""
}
