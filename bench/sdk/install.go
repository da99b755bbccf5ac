package sdk

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed package.json package-lock.json pace.mjs drive.mjs
var files embed.FS

// MissingError is a program that SDKs can't be run without, and that is not there.
type MissingError struct{ Program string }

func (m *MissingError) Error() string { return m.Program + " is not installed" }

// Programs says whether everything is there that SDKs need: node and npm. If not,
// the error is a *MissingError.
func Programs() error {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return &MissingError{program}
		}
	}
	return nil
}

// Installed is a folder with SDKs.
type Installed struct{ dir string }

// Install has the SDKs in a folder of their own under cache, which is made if need
// be: what an earlier call has installed from the same files is taken as it is. Else
// it runs npm, which asks the registry that it is set up with. Two processes may
// install at a time.
func Install(ctx context.Context, cache string) (*Installed, error) {
	if err := Programs(); err != nil {
		return nil, fmt.Errorf("install SDKs: %w", err)
	}
	name, err := contents()
	if err != nil {
		return nil, fmt.Errorf("install SDKs: %w", err)
	}
	cache, err = filepath.Abs(cache)
	if err != nil {
		return nil, fmt.Errorf("install SDKs: %w", err)
	}
	dir := filepath.Join(cache, "sdk-"+name)
	if _, err := os.Stat(dir); err == nil {
		return &Installed{dir}, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("install SDKs: %w", err)
	}
	// It gets its name when it is complete.
	made, err := os.MkdirTemp(cache, "sdk-new-")
	if err != nil {
		return nil, fmt.Errorf("install SDKs: %w", err)
	}
	if err := fill(ctx, made); err != nil {
		return nil, fmt.Errorf("install SDKs: %w", errors.Join(err, os.RemoveAll(made)))
	}
	if err := os.Rename(made, dir); err != nil {
		err = errors.Join(err, os.RemoveAll(made))
		// Perhaps somebody else was faster.
		if _, missing := os.Stat(dir); missing != nil {
			return nil, fmt.Errorf("install SDKs: %w", err)
		}
	}
	return &Installed{dir}, nil
}

// contents is a name for what the files say.
func contents() (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(path)
		hash.Write([]byte(path))
		hash.Write(content)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil))[:12], err
}

func fill(ctx context.Context, dir string) error {
	if err := os.CopyFS(dir, files); err != nil {
		return fmt.Errorf("write the driver: %w", err)
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
	npm.Dir = dir
	if output, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w", errors.Join(err, errors.New(string(output))))
	}
	return nil
}
