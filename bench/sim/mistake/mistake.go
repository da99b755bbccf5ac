// Package mistake seeds mistakes into the sources of the real parts, for a build of
// the simulator that nobody else runs.
//
// A trap that is about what surrounds the state machine is a wrapper in package
// sim. One that is about its insides has to be inside, and no program that anybody
// runs may have a switch for it: so the compiler is told to read other sources. All
// mistakes are in one binary, which makes the one that the environment names.
package mistake

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/quorlease/quorlease/tools/overlay"
)

// Variable names the mistake that a binary makes.
const Variable = "QUORLEASE_SEEDED_MISTAKE"

// Mistake is a known way to get something wrong.
type Mistake struct {
	// Name is the trap's number.
	Name string
	// Rules are those of the judge that it breaks: one of them shows it first. None: the
	// simulator does not bring it about.
	Rules []string
	edits []overlay.Edit
}

// Checked is a mistake that the simulator does not bring about, and the tests that notice
// it: Package is the folder of their package, Run what -test.run gets.
type Checked struct {
	Mistake
	Package, Run string
}

// switched is what each package with a mistake gets.
const switched = `package %s

import "os"

var seeded = os.Getenv(%q)

func mistake(name string) bool { return seeded == name }
`

// Sources are those of the tree at root with all mistakes, below dir. Whatever is built
// from them shares what the go command has compiled.
type Sources struct{ root, dir, flag string }

// Write writes them.
func Write(root, dir string) (*Sources, error) {
	var edits []overlay.Edit
	added := make(map[string]string)
	all := All()
	for _, c := range Tested() {
		all = append(all, c.Mistake)
	}
	for _, m := range all {
		edits = append(edits, m.edits...)
		for _, e := range m.edits {
			in := path.Dir(e.File)
			added[path.Join(in, "seeded_mistake.go")] = fmt.Sprintf(switched, path.Base(in), Variable)
		}
	}
	flag, err := overlay.Write(root, dir, edits, added)
	if err != nil {
		return nil, fmt.Errorf("seed mistakes: %w", err)
	}
	return &Sources{root, dir, flag}, nil
}

// Build builds the simulator, and returns the program.
func (s *Sources) Build(ctx context.Context) (string, error) {
	program := filepath.Join(s.dir, "sim")
	return program, s.build(ctx, "build", "-ldflags=-s -w", "-o", program, "./bench/sim/run")
}

// BuildTests builds the tests of a package, and returns the program.
func (s *Sources) BuildTests(ctx context.Context, in string) (string, error) {
	program := filepath.Join(s.dir, strings.ReplaceAll(in, "/", "-")+".test")
	return program, s.build(ctx, "test", "-c", "-ldflags=-s -w", "-o", program, "./"+in)
}

// build runs the go command with other sources.
func (s *Sources) build(ctx context.Context, verb string, args ...string) error {
	command := exec.CommandContext(ctx, "go", append([]string{verb, "-buildvcs=false", s.flag}, args...)...)
	command.Dir = s.root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s with mistakes: %w: %s", verb, err, output)
	}
	return nil
}

// Run runs a program that Build made with one mistake, as a command line would. It
// runs one seed at a time: of two at once the one that is not needed is waited for.
func Run(ctx context.Context, program, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), Variable+"="+name, "GOMAXPROCS=1")
	return command
}
