package languages_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackages runs the packages' own tests, as their languages do it.
func TestPackages(t *testing.T) {
	t.Parallel()
	t.Run("python", func(t *testing.T) {
		said, err := python(t).run(t, nil, "-m", "unittest", "discover", "-s", ".", "-t", ".")
		// What is found when an object goes away fails no test by itself.
		if err != nil || strings.Contains(said, "ResourceWarning") || !strings.Contains(said, "\nOK") {
			t.Errorf("%v\n%s", err, said)
		}
	})
	t.Run("python_types", func(t *testing.T) {
		needs(t, "mypy", "mypy")
		mypy := exec.CommandContext(t.Context(), "mypy", "--cache-dir", t.TempDir(), "-p", "quorlease")
		mypy.Dir = filepath.Join(root, "clients", "python")
		if out, err := mypy.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("typescript", func(t *testing.T) {
		node := typescript(t)
		said, err := node.run(t, nil, "--test", filepath.Join("test", "client.test.js"))
		if err != nil || !strings.Contains(said, "# fail 0") {
			t.Errorf("%v\n%s", err, said)
		}
	})
}
