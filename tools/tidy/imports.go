package tidy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Package is what "go list -json" says of one package.
type Package struct {
	ImportPath   string
	Standard     bool
	DepOnly      bool
	Export       string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// Graph is the packages of the project and everything they are built from, by
// import path.
type Graph map[string]*Package

// List asks the go command for the graph of the module at root, compiling what
// is not in the build cache, so that export data exists.
func List(ctx context.Context, root string) (Graph, error) {
	command := exec.CommandContext(ctx, "go", "list", "-e", "-deps", "-export",
		"-json=ImportPath,Standard,DepOnly,Export,Imports,TestImports,XTestImports", "./...")
	command.Dir = root
	command.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	graph := make(Graph)
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for {
		p := new(Package)
		if err := decoder.Decode(p); err == io.EOF {
			return graph, nil
		} else if err != nil {
			return nil, fmt.Errorf("read package list: %w", err)
		}
		graph[p.ImportPath] = p
	}
}

// Open is a Lookup over the graph's export data.
func (g Graph) Open(importPath string) (io.ReadCloser, error) {
	p := g[importPath]
	if p == nil || p.Export == "" {
		return nil, fmt.Errorf("no export data for %s", importPath)
	}
	return os.Open(p.Export)
}

// ImportRule says what packages may import. Patterns are import paths, ours
// without the module's prefix; a trailing /... takes in everything below, and
// "std" is the standard library.
type ImportRule struct {
	Name string
	Why  string
	// Of are the packages that the rule binds, Except those that it does not.
	Of, Except []string
	// Only, where given, is everything that may be imported.
	Only []string
	// Never is what may not be, even where Only allows it.
	Never []string
	// Tests are bound too.
	Tests bool
}

// impure are the standard packages that bring a clock, a scheduler, an
// environment or chance with them.
var impure = []string{
	"context", "crypto/rand", "log/...", "math/rand/...", "net/...", "os/...",
	"runtime/...", "sync/...", "syscall", "unsafe",
}

// serving is what runs nodes.
var serving = []string{
	"cluster/...", "fsm", "embedded", "api/server", "api/httpapi", "github.com/hashicorp/...", "github.com/spf13/...",
}

// ImportRules returns the directions in which packages may know one another.
func ImportRules() []ImportRule {
	return slices.Concat(pureRules(), outerRules(), clientRules(), libraryRules())
}

const logv1, peerv1 = "api/quorlease/log/v1", "api/quorlease/peer/v1"

// pureRules are about what takes time as an argument.
func pureRules() []ImportRule {
	return []ImportRule{
		{
			Name: "arithmetic", Of: []string{"fsm/bucket", "fsm/window"}, Only: []string{"std"}, Never: impure,
			Why: "a core too poor to misbehave: it gets time and numbers as arguments",
		},
		{
			Name: "retry", Of: []string{"fsm/retry"}, Only: []string{"std", "fsm/window"}, Never: impure,
			Why: "a core too poor to misbehave: it gets time and numbers as arguments",
		},
		{
			Name: "pace", Of: []string{"fsm/pace"}, Only: []string{"std", "fsm/bucket"}, Never: impure,
			Why: "a core too poor to misbehave: it gets time and numbers as arguments",
		},
		{
			Name: "failopen", Of: []string{"client/failopen"},
			Only:  []string{"std", "fsm/bucket", "fsm/window", "fsm/retry"},
			Never: []string{"context", "crypto/rand", "log/...", "net/...", "os/...", "runtime/...", "syscall", "unsafe"},
			Why:   "what a client does alone is a function of what it saw and when: it has a lock, no clock and no network",
		},
		{
			Name: "gateway-pure", Of: []string{
				"client/gateway/attempt", "client/gateway/circuit", "client/gateway/estimate/...", "client/gateway/fallback",
				"client/gateway/spent", "client/gateway/who",
			},
			Only: []string{"std", "client/gateway/...", "client/feedback", "client/names"},
			// A circuit draws its jitter (math/rand/v2), and attempts are read from headers (net/http).
			Never: []string{"crypto/rand", "log/...", "os/...", "runtime/...", "syscall", "unsafe", "context"},
			Why:   "what a gateway decides is a function of what it saw and when: it has a lock, no clock and no network",
		},
		{
			Name: "plan", Of: []string{"plan"}, Only: []string{"std", "fsm/bucket"}, Never: impure,
			Why: "a plan is a function of what was asked: it reads no file and no clock",
		},
		{
			Name: "doctor", Of: []string{"doctor"}, Never: append([]string{"cmd/...", "cluster/...", "api/server"}, impure...),
			Only: []string{"std", "plan", "fsm/bucket", "api/limitsfile/...", logv1, "api/quorlease/v1"},
			Why:  "what is found is a function of the file and the day: it reads neither",
		},
		{
			Name: "machine", Of: []string{"fsm/..."},
			Except: []string{"fsm/bucket", "fsm/window", "fsm/retry", "fsm/fsmtest"},
			Only:   []string{"std", "fsm/...", logv1, "google.golang.org/protobuf/..."},
			Never:  append([]string{"fsm/fsmtest"}, impure...),
			Why:    "consensus, logs, metrics and servers are adapters: the machine never heard of them",
		},
	}
}

func outerRules() []ImportRule {
	return []ImportRule{
		{
			Name: "public-protocol", Of: []string{"api/quorlease/v1", logv1},
			Never: []string{"fsm/...", "cluster/...", "api/..."},
			Why:   "generated code is a leaf: the wire may change without touching what a node can replay",
		},
		{
			Name: "peer-protocol", Of: []string{peerv1},
			Never: []string{"fsm/...", "cluster/...", "api/quorlease/v1", "api/server"},
			Why:   "peers speak in operations of the log",
		},
		{
			Name: "cluster", Of: []string{"cluster/..."},
			Never: []string{
				"api/quorlease/v1", "api/server", "api/httpapi", "api/limitsfile", "bench/...", "client/...",
			},
			Why: "the public protocol becomes operations once, in api/server; a node knows nothing of it",
		},
		{
			Name: "embedded", Of: []string{"embedded"},
			Only: []string{
				"std", "api/httpapi", "api/limitsfile", "api/quorlease/v1", "api/server", "client", "cluster", "cluster/wire",
				"github.com/hashicorp/go-hclog", "github.com/prometheus/client_golang/prometheus",
				"google.golang.org/grpc/peer", "google.golang.org/grpc/test/bufconn", "google.golang.org/protobuf/proto",
			},
			Why: "a node in a process is the node that serves a cluster: nothing is decided here",
		},
		{
			Name: "embedded-above", Of: []string{"api/...", "cluster/...", "fsm/..."}, Never: []string{"embedded"}, Tests: true,
			Why: "arrows point down: a node does not know where it runs",
		},
		{
			Name: "command", Of: []string{"..."}, Except: []string{"cmd/..."}, Never: []string{"cmd/..."}, Tests: true,
			Why: "arrows point down: nothing imports the command",
		},
		{
			Name: "bench", Of: []string{"..."}, Tests: true,
			// The top has no code but tests, which draw the pictures of docs.
			Except: []string{".", "bench/...", "cmd/..."}, Never: []string{"bench/..."},
			Why: "what is measured does not know of the measuring",
		},
		{
			Name: "servers", Of: []string{"api/server", "api/httpapi", "api/limitsfile", "api/dashboard"},
			Never: []string{"client/...", "github.com/spf13/..."},
			Why:   "servers translate; they neither dial nor parse command lines",
		},
		{
			Name: "product", Of: []string{"..."},
			Except: []string{
				"fsm/fsmtest", "cluster/clustertest", "bench/gateways/bubble", "api/dashboard/browsertest", "tools/...",
			},
			Never: []string{
				"testing/...", "go.uber.org/goleak/...", "pgregory.net/rapid/...",
				"github.com/google/go-cmp/...", "github.com/rogpeppe/go-internal/...",
				"github.com/chromedp/...", "api/dashboard/browsertest",
			},
			Why: "what helps tests is not shipped",
		},
	}
}

// clientRules are about what users build into programs of their own.
func clientRules() []ImportRule {
	return []ImportRule{
		{
			Name: "client", Of: []string{"client/..."},
			Except: []string{"client/clienttest", "client/clientprom", "client/gateway/gatewayprom"},
			Never:  append([]string{"github.com/prometheus/..."}, serving...),
			Why:    "users build the client into programs of their own: no node, no Raft, no metrics library comes with it",
		},
		{
			Name: "gateway", Of: []string{"client/gateway/..."},
			Except: []string{
				"client/gateway", "client/gateway/charge", "client/gateway/file", "client/gateway/gate",
				"client/gateway/gatewayprom", "client/gateway/told",
			},
			Only: []string{
				"std", "client", "client/feedback", "client/grpcmw", "client/httpmw", "client/names", "client/gateway/...",
				"google.golang.org/grpc/codes", "google.golang.org/grpc/metadata", "github.com/dunglas/httpsfv",
			},
			Never: []string{"net", "os/...", "log/...", "crypto/tls", "unsafe"},
			Why:   "the parts of a gateway know what to say and to whom, and neither listen nor dial",
		},
		{
			Name: "gateway-asks", Of: []string{"client/gateway/charge", "client/gateway/told"},
			Only: []string{
				"std", "client", "client/clock", "client/failopen", "client/feedback", "client/names", "client/report",
				"client/session", "client/gateway/...", "google.golang.org/grpc/codes",
				"google.golang.org/grpc/status",
			},
			Never: []string{"net", "os/...", "crypto/tls", "syscall", "unsafe"},
			Why:   "what a gateway asks and tells goes through a client, which alone knows the nodes",
		},
		{
			Name: "gateway-gate", Of: []string{"client/gateway/gate"},
			Only: []string{
				"std", "client", "client/report", "client/session", "client/gateway/...", "google.golang.org/grpc/...",
				"google.golang.org/grpc", "google.golang.org/protobuf/proto",
			},
			Never: []string{"net", "os/...", "log/...", "crypto/tls", "syscall", "unsafe"},
			Why:   "what stands before a service of others neither listens nor dials: the service does",
		},
		{
			Name: "gateway-proxy", Of: []string{"client/gateway"},
			Only: []string{
				"std", "client", "client/names", "client/report", "client/session", "client/gateway/...", "fsm/retry",
			},
			Never: []string{"os/...", "crypto/tls", "syscall", "unsafe"},
			Why:   "the proxy puts the parts in order: who listens, and what a file says, are not its business",
		},
		{
			Name: "gateway-file", Of: []string{"client/gateway/file"},
			Only: []string{
				"std", "client/gateway", "client/gateway/...", "client/names", "fsm/retry", "api/limitsfile/strict",
				"api/limitsfile/written", "github.com/goccy/go-yaml/ast",
			},
			Never: []string{"context", "crypto/rand", "log/...", "net", "os/...", "syscall", "unsafe"},
			Why:   "what a file means is a function of the file: who reads it opens files and looks at the environment",
		},
		{
			Name: "client-figures", Of: []string{"client/clientprom", "client/gateway/gatewayprom"}, Never: serving,
			Why: "as for the client; the metrics library is what this package is for",
		},
	}
}

// libraryRules say who alone knows a library of others.
func libraryRules() []ImportRule {
	return []ImportRule{
		{
			Name: "raft", Of: []string{"..."}, Tests: true,
			Except: []string{"cluster", "cluster/clustertest", "cluster/crash", "cluster/disk", "cluster/roster"},
			Never: []string{
				"github.com/hashicorp/raft/...", "github.com/hashicorp/raft-boltdb/...", "go.etcd.io/bbolt/...",
			},
			Why: "consensus is an adapter: only the package that wires it knows the library",
		},
		{
			Name: "terminal", Of: []string{"..."}, Except: []string{"cmd/quorlease/top"}, Tests: true,
			Never: []string{"charm.land/...", "github.com/charmbracelet/..."},
			Why:   "one command draws on a terminal: nothing else is built from what that takes",
		},
		{
			Name: "peers", Of: []string{"..."}, Except: []string{"bench/compare/redis"}, Tests: true,
			Never: []string{"github.com/redis/..."},
			Why:   "what we are compared with is called where it is measured, and nowhere else",
		},
	}
}

// CheckImports applies one rule to the graph. A rule whose packages do not
// exist binds nothing: the caller decides whether that is right.
func (g Graph) CheckImports(rule ImportRule) (found []Violation, bound int) {
	for _, p := range g {
		if !g.ours(p.ImportPath) {
			continue
		}
		name := short(p.ImportPath)
		if !matchAny(rule.Of, name) || matchAny(rule.Except, name) {
			continue
		}
		bound++
		imports := p.Imports
		if rule.Tests {
			imports = append(append(append([]string(nil), imports...), p.TestImports...), p.XTestImports...)
		}
		for _, imported := range imports {
			if what := g.refuse(rule, imported); what != "" {
				found = append(found, Violation{name, 0, what})
			}
		}
	}
	return sorted(found), bound
}

func (g Graph) ours(importPath string) bool { return under(importPath, Module) }

// short drops the module's prefix; the root package is ".".
func short(importPath string) string {
	if importPath == Module {
		return "."
	}
	return strings.TrimPrefix(importPath, Module+"/")
}

func (g Graph) refuse(rule ImportRule, imported string) string {
	name := short(imported)
	standard := g.standard(imported)
	if matchAny(rule.Never, name) {
		return "imports " + name
	}
	if rule.Only == nil || standard && matchAny(rule.Only, "std") || matchAny(rule.Only, name) {
		return ""
	}
	return "imports " + name + ", may import only " + strings.Join(rule.Only, ", ")
}

// standard falls back on the rule that the standard library's paths have no dot
// in their first element, for packages that only tests import.
func (g Graph) standard(importPath string) bool {
	if p := g[importPath]; p != nil {
		return p.Standard
	}
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func matchAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		base, deep := strings.CutSuffix(pattern, "/...")
		switch {
		case pattern == "...", pattern == name, deep && under(name, base):
			return true
		}
	}
	return false
}
