package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/tools/overlay"
)

// mechanism is what settles a row: without it a test of the row must fail.
type mechanism struct {
	row string
	// file has the text in it once; without is what is there instead.
	file, text, without string
	// tests is the package whose tests notice, and pattern those that do, for
	// "go test -run"; empty: those with the row's id in their names.
	tests, pattern string
}

// draw says which rows to break.
type draw struct {
	root string
	seed uint64
	// rows is how many, 0 for all.
	rows int
	// only are the rows to break instead, with commas between.
	only string
}

// breakRows takes the mechanisms behind some rows away, one after another.
func breakRows(ctx context.Context, d draw, out io.Writer) error {
	drawn := slices.Clone(mechanisms)
	if d.only != "" {
		wanted := strings.Split(d.only, ",")
		drawn = slices.DeleteFunc(drawn, func(m mechanism) bool { return !slices.Contains(wanted, m.row) })
		d.rows = 0
	}
	chance := rand.New(rand.NewPCG(d.seed, 0))
	chance.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	if d.rows > 0 && d.rows < len(drawn) {
		drawn = drawn[:d.rows]
	}
	var unnoticed []error
	for _, m := range drawn {
		verdict := "noticed"
		if err := m.broken(ctx, d.root); err != nil {
			verdict = "NOT NOTICED"
			unnoticed = append(unnoticed, fmt.Errorf("%s: %w", m.row, err))
		}
		fmt.Fprintf(out, "%s without %q in %s: %s\n", m.row, strings.TrimSpace(firstLine(m.text)), m.file, verdict)
	}
	return errors.Join(unnoticed...)
}

// broken is nil where the tests of the row pass with the mechanism and fail
// without it.
func (m mechanism) broken(ctx context.Context, root string) error {
	dir, err := os.MkdirTemp("", "mission")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	without, err := m.overlay(root, dir)
	if err != nil {
		return err
	}
	if output, err := m.test(ctx, root); err != nil {
		return fmt.Errorf("fails with the mechanism too: %s", last(output))
	}
	output, err := m.test(ctx, root, without)
	switch {
	case err == nil:
		return errors.New("its tests pass without the mechanism")
	case ctx.Err() != nil:
		return ctx.Err()
	case bytes.Contains(output, []byte("[build failed]")), bytes.Contains(output, []byte("no test files")):
		return fmt.Errorf("does not build without the mechanism: %s", last(output))
	case bytes.Contains(output, []byte("no tests to run")):
		return errors.New("no test has the row in its name")
	}
	return nil
}

// test runs the row's tests.
func (m mechanism) test(ctx context.Context, root string, flags ...string) ([]byte, error) {
	pattern := m.pattern
	if pattern == "" {
		pattern = "/" + m.row
	}
	args := append([]string{"test", "-count=1", "-vet=off", "-timeout=5m", "-run", pattern}, flags...)
	args = append(args, "./"+m.tests)
	if m.drawn(root) {
		// What fails here is no finding to be kept in the tree.
		args = append(args, "-rapid.nofailfile")
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = root
	output, err := command.CombinedOutput()
	if err == nil && bytes.Contains(output, []byte("no tests to run")) {
		err = errors.New("no tests to run")
	}
	return output, err
}

// drawn says whether the tests draw their cases by package rapid.
func (m mechanism) drawn(root string) bool {
	files, err := filepath.Glob(filepath.Join(root, m.tests, "*_test.go"))
	return err == nil && slices.ContainsFunc(files, func(file string) bool {
		source, err := os.ReadFile(file)
		return err == nil && bytes.Contains(source, []byte(`"pgregory.net/rapid"`))
	})
}

// overlay is the argument that lets the compiler read the file without the
// mechanism.
func (m mechanism) overlay(root, dir string) (string, error) {
	return overlay.Write(root, dir, []overlay.Edit{{File: m.file, Text: m.text, With: m.without}}, nil)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// last is the end of a test's output, for an error.
func last(output []byte) string {
	const most = 600
	if len(output) > most {
		output = output[len(output)-most:]
	}
	return strings.TrimSpace(string(output))
}
