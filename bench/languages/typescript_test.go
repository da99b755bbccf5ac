package languages_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/quorlease/quorlease/bench/sdk"
)

// built is where the package was built, once for all tests: TestMain removes it.
var built struct {
	sync.Mutex
	folder string
	err    error
	done   bool
}

// typescript is Node with the package of the tree as it would be published, and its tests beside
// it: compiled, and nothing of the tree is written to.
func typescript(t *testing.T) toolchain {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if !built.done {
		built.folder, built.err = build()
		built.done = true
	}
	var missing *sdk.MissingError
	if errors.As(built.err, &missing) {
		t.Skipf("%s is not installed (Debian: nodejs, npm): the TypeScript client was not driven", missing.Program)
	}
	if built.err != nil {
		t.Fatal(built.err)
	}
	return toolchain{program: "node", dir: built.folder, env: []string{"NODE_NO_WARNINGS="}}
}

// build compiles the package into a folder in which a program finds it by its name.
func build() (string, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), 4*time.Minute, errors.New("it took 4 minutes"))
	defer cancel()
	from := filepath.Join(root, "clients", "typescript")
	tools, err := sdk.Packages(ctx, filepath.Join(root, ".tools"), manifest{os.DirFS(from)})
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "quorlease-typescript-")
	if err != nil {
		return "", err
	}
	modules, example := filepath.Join(folder, "node_modules"), filepath.Join(folder, "example")
	if err := errors.Join(
		os.CopyFS(folder, os.DirFS(from)), os.Symlink(tools.Modules(), modules),
		os.CopyFS(example, os.DirFS(filepath.Join(root, "examples", "typescript"))),
	); err != nil {
		return folder, err
	}
	strict := []string{"--target", "es2022", "--module", "nodenext", "--strict", "--types", "node"}
	for _, args := range [][]string{{"-p", "tsconfig.json"}, append(strict, filepath.Join("example", "ask.ts"))} {
		compiler := filepath.Join(modules, "typescript", "bin", "tsc")
		tsc := exec.CommandContext(ctx, "node", append([]string{compiler}, args...)...)
		tsc.Dir = folder
		if out, err := tsc.CombinedOutput(); err != nil {
			return folder, errors.Join(err, errors.New(string(out)))
		}
	}
	return folder, nil
}
