package tidy

import (
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// want marks the lines of a seeded source that a rule must find, and nothing
// else: "// want" in Go, "<!-- want -->" in Markdown. "want file" anywhere
// stands for the file as a whole, "want package" for its folder.
var want = regexp.MustCompile(`(?://|#|<!--) want( file| package)?\b`)

// repeat stands for so many lines of comment, so that a seeded file of 401
// lines is not one.
var repeat = regexp.MustCompile(`(?m)^// repeat (\d+)\n`)

// TestRulesCatch runs each rule over testdata/<rule>.txtar, which holds seeded
// violations beside lookalikes that are allowed.
func TestRulesCatch(t *testing.T) {
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join("testdata", rule.Name+".txtar"))
			if err != nil {
				t.Fatalf("a rule needs a seeded violation: %v", err)
			}
			tree, expected := seeded(t, archive)
			if len(expected) == 0 {
				t.Fatal("no line says want: a rule that finds nothing proves nothing")
			}
			got := make(map[Violation]bool)
			for _, v := range rule.Check(tree) {
				v.What = ""
				got[v] = true
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func seeded(t *testing.T, archive *txtar.Archive) (*Tree, map[Violation]bool) {
	t.Helper()
	tree := emptyTree()
	expected := make(map[Violation]bool)
	for _, file := range archive.Files {
		source := repeat.ReplaceAllStringFunc(string(file.Data), func(line string) string {
			n, err := strconv.Atoi(repeat.FindStringSubmatch(line)[1])
			if err != nil {
				t.Fatal(err)
			}
			return strings.Repeat("// Line.\n", n)
		})
		if err := tree.Add(file.Name, source); err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(source, "\n") {
			switch match := want.FindStringSubmatch(line); {
			case match == nil:
			case match[1] == " file":
				expected[Violation{File: file.Name}] = true
			case match[1] == " package":
				expected[Violation{File: path.Dir(file.Name)}] = true
			default:
				expected[Violation{File: file.Name, Line: i + 1}] = true
			}
		}
	}
	return tree, expected
}

// emptyTree can resolve what the seeded sources import.
func emptyTree() *Tree {
	return &Tree{Set: token.NewFileSet(), Text: make(map[string]string), Importer: exported}
}

// exported asks the go command for one package's export data.
func exported(importPath string) (io.ReadCloser, error) {
	output, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", importPath).Output()
	if err != nil {
		return nil, err
	}
	return os.Open(strings.TrimSpace(string(output)))
}

func TestImportRulesCatch(t *testing.T) {
	graph := func(from string, imports ...string) Graph {
		p := &Package{ImportPath: Module + "/" + from}
		for _, name := range imports {
			if strings.Contains(name, ".") || !strings.Contains(name, "/") {
				p.Imports = append(p.Imports, name)
			} else {
				p.Imports = append(p.Imports, Module+"/"+name)
			}
		}
		return Graph{p.ImportPath: p}
	}
	for _, tt := range []struct {
		rule, from, imported string
		want                 bool
	}{
		{"arithmetic", "fsm/bucket", "math", false},
		{"arithmetic", "fsm/bucket", "sync", true},
		{"arithmetic", "fsm/bucket", "github.com/google/go-cmp/cmp", true},
		{"retry", "fsm/retry", "fsm/window", false},
		{"retry", "fsm/retry", "fsm/bucket", true},
		{"pace", "fsm/pace", "fsm/bucket", false},
		{"pace", "fsm/pace", "fsm/lineage", true},
		{"plan", "plan", "fsm/bucket", false},
		{"plan", "plan", "api/limitsfile", true},
		{"doctor", "doctor", "api/limitsfile/callers", false},
		{"doctor", "doctor", "os", true},
		{"machine", "fsm", "fsm/bucket", false},
		{"machine", "fsm/store", "fsm/bucket", false},
		{"machine", "fsm", "fsm/fsmtest", true},
		{"machine", "fsm", "google.golang.org/protobuf/proto", false},
		{"machine", "fsm", "google.golang.org/grpc", true},
		{"machine", "fsm", "cluster/batch", true},
		{"machine", "fsm", "os", true},
		{"public-protocol", "api/quorlease/v1", "api/quorlease/log/v1", true},
		{"peer-protocol", "api/quorlease/peer/v1", "api/quorlease/log/v1", false},
		{"peer-protocol", "api/quorlease/peer/v1", "api/quorlease/v1", true},
		{"cluster", "cluster/batch", "api/quorlease/log/v1", false},
		{"cluster", "cluster/batch", "api/quorlease/v1", true},
		{"raft", "cluster", "github.com/hashicorp/raft", false},
		{"raft", "cluster/batch", "github.com/hashicorp/raft", true},
		{"raft", "api/server", "github.com/hashicorp/raft-boltdb/v2", true},
		{"command", "bench/load", "cmd/quorlease", true},
		{"bench", "cluster/batch", "bench/load", true},
		{"terminal", "cmd/quorlease/top", "charm.land/bubbletea/v2", false},
		{"terminal", "client", "github.com/charmbracelet/x/ansi", true},
		{"peers", "bench/compare/redis", "github.com/redis/rueidis", false},
		{"peers", "client", "github.com/redis/rueidis", true},
		{"gateway", "client/gateway/refuse", "client/httpmw", false},
		{"gateway", "client/gateway/refuse", "client/authority", true},
		{"gateway", "client/gateway/stream", "net", true},
		{"gateway-pure", "client/gateway/spent", "client/gateway/stream", false},
		{"gateway-pure", "client/gateway/circuit", "context", true},
		{"servers", "api/server", "github.com/spf13/cobra", true},
		{"product", "cluster/batch", "testing", true},
		{"product", "cluster/clustertest", "testing", false},
		{"product", "api/httpapi", "api/dashboard/browsertest", true},
		{"product", "api/dashboard/browsertest", "github.com/chromedp/chromedp", false},
	} {
		t.Run(tt.rule+" "+tt.from+" "+tt.imported, func(t *testing.T) {
			for _, rule := range ImportRules() {
				if rule.Name != tt.rule {
					continue
				}
				if found, _ := graph(tt.from, tt.imported).CheckImports(rule); len(found) > 0 != tt.want {
					t.Errorf("found %v, want a violation: %v", found, tt.want)
				}
				return
			}
			t.Errorf("no rule %s", tt.rule)
		})
	}
}

func TestWordsOf(t *testing.T) {
	for name, want := range map[string][]string{
		"newTATBucket_2": {"new", "tat", "bucket"},
		"HTTPServer":     {"http", "server"},
		"retryAfterMS":   {"retry", "after", "ms"},
		"state":          {"state"},
		"rotate":         {"rotate"},
	} {
		if diff := cmp.Diff(want, wordsOf(name)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestAnchors(t *testing.T) {
	got := anchors("# A page\n\n## All or nothing, or: `G3`?\n")
	if diff := cmp.Diff([]string{"a-page", "all-or-nothing-or-g3"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
