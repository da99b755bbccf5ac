// Package overlay lets the go command read other sources than the tree has, so that
// a mistake can be looked at without being made: see "go help build", -overlay.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Edit is one change of one file.
type Edit struct {
	// File is a path from the top of the tree.
	File string
	// Text is in the file exactly once; With is what is read instead.
	Text, With string
}

// Write writes the files as edited, and those that are new (by their paths from the
// top of the tree), below dir, and returns the argument for the go command. Edits
// of one file are made one after another.
func Write(root, dir string, edits []Edit, added map[string]string) (string, error) {
	texts := make(map[string]string)
	for _, e := range edits {
		text, edited := texts[e.File]
		if !edited {
			source, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return "", fmt.Errorf("read source: %w", err)
			}
			text = string(source)
		}
		if n := strings.Count(text, e.Text); n != 1 {
			return "", fmt.Errorf("%s has %q %d times, want once", e.File, e.Text, n)
		}
		texts[e.File] = strings.Replace(text, e.Text, e.With, 1)
	}
	for file, text := range added {
		texts[file] = text
	}
	replace := make(map[string]string)
	for file, text := range texts {
		whole, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", fmt.Errorf("find source: %w", err)
		}
		other := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("write source: %w", err)
		}
		replace[whole] = other
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, list, 0o600); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	return "-overlay=" + name, nil
}
