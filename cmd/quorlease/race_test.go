//go:build race

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// programFirst builds the program as users have it, and puts it before everything
// else in the path: under the race detector it takes several times as long, and the
// scripts start dozens of nodes. What the program is made of is tested under the
// race detector in its packages, and in the tests of this one that call it.
func programFirst() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "quorlease")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	command := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "quorlease"), ".")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		remove()
		return nil, fmt.Errorf("build the program: %w: %s", err, output)
	}
	return remove, os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}
