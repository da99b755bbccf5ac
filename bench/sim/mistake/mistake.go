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

	"github.com/quorlease/quorlease/tools/overlay"
)

// Variable names the mistake that a binary makes.
const Variable = "QUORLEASE_SEEDED_MISTAKE"

// Mistake is a known way to get something wrong.
type Mistake struct {
	// Name is the trap's number.
	Name string
	// Rules are those of the judge that it breaks: one of them shows it first.
	Rules []string
	edits []overlay.Edit
}

// switched is what each package with a mistake gets.
const switched = `package %s

import "os"

var seeded = os.Getenv(%q)

func mistake(name string) bool { return seeded == name }
`

// Build builds the simulator with all mistakes from the tree at root, with what it
// needs below dir, and returns the program.
func Build(ctx context.Context, root, dir string) (string, error) {
	var edits []overlay.Edit
	added := make(map[string]string)
	for _, m := range All() {
		edits = append(edits, m.edits...)
		for _, e := range m.edits {
			in := path.Dir(e.File)
			added[path.Join(in, "seeded_mistake.go")] = fmt.Sprintf(switched, path.Base(in), Variable)
		}
	}
	flag, err := overlay.Write(root, dir, edits, added)
	if err != nil {
		return "", fmt.Errorf("seed mistakes: %w", err)
	}
	program := filepath.Join(dir, "sim")
	command := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", program, flag,
		"./bench/sim/run")
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the simulator with mistakes: %w: %s", err, output)
	}
	return program, nil
}

// Run runs a program that Build made with one mistake, as a command line would. It
// runs one seed at a time: of two at once the one that is not needed is waited for.
func Run(ctx context.Context, program, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), Variable+"="+name, "GOMAXPROCS=1")
	return command
}
