package peer

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Program is one that a system needs.
type Program struct {
	// Name is what a Config knows it by.
	Name string
	// Files are the names that it goes by, the first that is found counts.
	Files []string
	// How says in one line how to get it.
	How string
}

// Find is the path of a program: in dir where that is given, on PATH, or where `go
// install` puts programs. Empty: it is not there.
func Find(dir string, p Program) string {
	for _, file := range p.Files {
		if dir != "" {
			if path := runnable(filepath.Join(dir, file)); path != "" {
				return path
			}
		}
		if path, err := exec.LookPath(file); err == nil {
			if path, err = filepath.Abs(path); err == nil {
				return path
			}
		}
		for _, bin := range goBins() {
			if path := runnable(filepath.Join(bin, file)); path != "" {
				return path
			}
		}
	}
	return ""
}

// goBins are the directories that `go install` writes to.
func goBins() (dirs []string) {
	if bin := os.Getenv("GOBIN"); bin != "" {
		dirs = append(dirs, bin)
	}
	for _, path := range filepath.SplitList(os.Getenv("GOPATH")) {
		dirs = append(dirs, filepath.Join(path, "bin"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, "go", "bin"))
	}
	return dirs
}

// runnable is the absolute path of a file that can be run.
func runnable(path string) string {
	found, err := exec.LookPath(path)
	if err != nil {
		return ""
	}
	if found, err = filepath.Abs(found); err != nil {
		return ""
	}
	return found
}
