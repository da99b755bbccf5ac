package languages_test

import (
	"io/fs"
	"slices"
)

// manifest is a folder of which only what npm reads is to be seen.
type manifest struct{ fs.FS }

func (m manifest) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(m.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() != "package.json" && e.Name() != "package-lock.json"
	}), err
}
