// Package outcome is what every bench command does around its run: it gives it a
// directory of its own, finds out beforehand whether what was asked for can be written
// afterwards, and turns what came of it into text, JSON, files and an error.
package outcome

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Shown is what a run came to.
type Shown interface {
	Text(w io.Writer) error
	JSON(w io.Writer) error
}

// Print is what a command prints of it.
func Print(r Shown, asJSON bool) ([]byte, error) {
	var out bytes.Buffer
	show := r.Text
	if asJSON {
		show = r.JSON
	}
	err := show(&out)
	return out.Bytes(), err
}

// Writable finds out before a run whether the file that a flag names can be written after
// it. What is in it stays until then. An empty path is none.
func Writable(flag, path string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return file.Close()
}

// Write writes the file that a flag names, all of it at once. An empty path is none.
func Write(flag, path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	var out bytes.Buffer
	if err := write(&out); err != nil {
		return err
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

// Within makes a directory in data, or where the system has such where that is empty,
// calls run with it and with the path of the running program, and removes it.
func Within(data, name string, run func(dir, program string) error) (err error) {
	dir, err := os.MkdirTemp(data, "quorlease-"+name+"-")
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the running program: %w", err)
	}
	return run(dir, program)
}

// Missed is an error with a line for each thing that did not hold; nil for none.
func Missed(lines []string) error {
	var errs []error
	for _, line := range lines {
		errs = append(errs, errors.New(line))
	}
	return errors.Join(errs...)
}
