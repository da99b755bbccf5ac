package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"strings"
	"unicode"
)

func wordRules() []Rule {
	return []Rule{
		{"words", "one word for one thing: the table in docs/concepts is the dictionary", checkWords},
		{"names", "a name says what the thing is, not that it is a thing", checkNames},
		{"unfinished", "do it, or leave it out", checkUnfinished},
		{"elsewhere", "the project is read by people who do not have this machine", checkElsewhere},
	}
}

// banned holds the few words that are never right, with what to say instead.
var banned = map[string]string{
	"tier": "class", "tiers": "classes",
	"ticket": "lease", "tickets": "leases",
	"epoch": "term", "epochs": "terms",
	"cooldown": "pause", "cooldowns": "pauses",
	"tat": "level and remainder",
}

func checkWords(t *Tree) (found []Violation) {
	for _, f := range t.Go {
		if exempt(f.Path) {
			continue
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			if name, ok := node.(*ast.Ident); ok {
				for _, what := range bannedIn(wordsOf(name.Name)) {
					found = append(found, t.at(f, name.Pos(), "%s: %s", name.Name, what))
				}
			}
			return true
		})
	}
	t.comments(func(f *GoFile, comment *ast.Comment) {
		for _, what := range bannedIn(strings.FieldsFunc(comment.Text, notLetter)) {
			found = append(found, t.at(f, comment.Pos(), "comment: %s", what))
		}
	})
	return sorted(found)
}

func bannedIn(words []string) (found []string) {
	for _, word := range words {
		if say, bad := banned[strings.ToLower(word)]; bad {
			found = append(found, fmt.Sprintf("say %q, not %q", say, word))
		}
	}
	return found
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

// wordsOf splits an identifier at underscores, digits and changes of case:
// "newTATBucket_2" is new, tat, bucket.
func wordsOf(name string) (words []string) {
	runes := []rune(name)
	start := 0
	flush := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(string(runes[start:end])))
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			flush(i)
			start = i + 1
		case unicode.IsUpper(r) && i > 0 && !unicode.IsUpper(runes[i-1]),
			// The last capital of a run begins the next word.
			unicode.IsUpper(r) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
			flush(i)
		}
	}
	flush(len(runes))
	return words
}

// empty words say nothing that the reader did not know.
var empty = map[string]bool{
	"manager": true, "helper": true, "helpers": true, "util": true, "utils": true, "impl": true,
}

// given are methods that an interface of hashicorp/raft names and shapes.
var given = map[string]bool{"GetLog": true, "GetUint64": true, "Create": true}

// isGiven says whether a method is as it is because the library wants it so.
func isGiven(f *GoFile, decl *ast.FuncDecl) bool {
	return decl.Recv != nil && given[decl.Name.Name] && importName(f, raftPath) != ""
}

func checkNames(t *Tree) (found []Violation) {
	check := func(f *GoFile, name *ast.Ident) {
		for _, word := range wordsOf(name.Name) {
			if empty[word] {
				found = append(found, t.at(f, name.Pos(), "%s: %q says nothing", name.Name, word))
			}
		}
	}
	for _, f := range t.Go {
		check(f, f.Syntax.Name)
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				check(f, node.Name)
				if words := wordsOf(node.Name.Name); words[0] == "get" && len(words) > 1 && !isGiven(f, node) {
					found = append(found, t.at(f, node.Name.Pos(), "%s: \"get\" says nothing", node.Name.Name))
				}
			case *ast.TypeSpec:
				check(f, node.Name)
			}
			return true
		})
	}
	return found
}

var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b|(?i:not (yet )?implemented|\bplaceholder\b|\bfor now,)`)

func checkUnfinished(t *Tree) (found []Violation) {
	t.comments(func(f *GoFile, comment *ast.Comment) {
		if hit := unfinished.FindString(comment.Text); hit != "" {
			found = append(found, t.at(f, comment.Pos(), "comment says %q", hit))
		}
	})
	return found
}

// elsewhere matches paths of somebody's own machine and words about how the text
// came to be, which tell a reader of the project nothing.
var elsewhere = regexp.MustCompile(`(?:^|[^A-Za-z0-9_.])/(?:root|home|Users|mnt)/[A-Za-z0-9_]` +
	`|(?i:\b(?:co-authored-by|this session|the brief)\b)`)

func checkElsewhere(t *Tree) (found []Violation) {
	look := func(name, source string) {
		if exempt(name) {
			return
		}
		for i, line := range strings.Split(source, "\n") {
			if hit := elsewhere.FindString(line); hit != "" {
				found = append(found, Violation{name, i + 1, "mentions " + strings.TrimSpace(hit)})
			}
		}
	}
	for _, f := range t.Go {
		look(f.Path, f.Source)
	}
	for name, source := range t.Text {
		look(name, source)
	}
	return sorted(found)
}

// exempt is the rules' own source and seeded violations, which must spell out
// what they forbid.
func exempt(name string) bool {
	return path.Dir(name) == "tools/tidy" || under(name, "tools/tidy/testdata")
}
