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
	"path"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed package.json package-lock.json pace.mjs drive.mjs clouds
var files embed.FS

// Set is which SDKs are installed together: the folder of their files.
type Set string

// The sets.
const (
	Usual  Set = "."
	Clouds Set = "clouds"
)

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

// Modules is where node finds the SDKs.
func (i *Installed) Modules() string { return filepath.Join(i.dir, "node_modules") }

// Install has the SDKs in a folder of their own under cache, which is made if need
// be: what an earlier call has installed of the same versions is taken as it is. Else
// it runs npm, which asks the registry that it is set up with. Two processes may
// install at a time.
func Install(ctx context.Context, cache string, set Set) (*Installed, error) {
	from, err := fs.Sub(files, string(set))
	if err != nil {
		return nil, fmt.Errorf("install SDKs: %w", err)
	}
	i, err := Packages(ctx, cache, from)
	if err != nil {
		return nil, fmt.Errorf("install SDKs: %w", err)
	}
	// The driver is of this version of the package, whoever installed the SDKs.
	for _, script := range []string{"pace.mjs", set.file("drive.mjs")} {
		if err := put(i.dir, script); err != nil {
			return nil, fmt.Errorf("install SDKs: %w", err)
		}
	}
	return i, nil
}

// Packages has what a package.json and its package-lock.json name, both at the top of from,
// in a folder of its own under cache, as Install has the SDKs. Whatever else from has is copied
// beside them. The error is a *MissingError where the machine lacks node or npm.
func Packages(ctx context.Context, cache string, from fs.FS) (*Installed, error) {
	if err := Programs(); err != nil {
		return nil, err
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return nil, err
	}
	version, err := versions(from)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "sdk-"+version)
	if _, err := os.Stat(dir); err != nil {
		if err := install(ctx, cache, dir, from); err != nil {
			return nil, err
		}
	}
	return &Installed{dir}, nil
}

// install has a new folder filled, which gets its name when it is complete.
func install(ctx context.Context, cache, dir string, from fs.FS) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(cache, "sdk-new-")
	if err != nil {
		return err
	}
	if err := fill(ctx, made, from); err != nil {
		return errors.Join(err, os.RemoveAll(made))
	}
	if err := os.Rename(made, dir); err != nil {
		err = errors.Join(err, os.RemoveAll(made))
		// Perhaps somebody else was faster.
		if _, missing := os.Stat(dir); missing != nil {
			return err
		}
	}
	return nil
}

// file is where a file of the set was built in.
func (s Set) file(name string) string { return path.Join(string(s), name) }

// versions is a name for what is installed.
func versions(from fs.FS) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return "", fmt.Errorf("read what to install: %w", err)
		}
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

// content is of a file that was built in.
func content(name string) []byte {
	content, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("%s was not built in: %v", name, err))
	}
	return content
}

// put writes a file that others may be reading.
func put(dir, name string) error {
	base := path.Base(name)
	made, err := os.CreateTemp(dir, base)
	if err != nil {
		return err
	}
	_, err = made.Write(content(name))
	return errors.Join(err, made.Close(), os.Rename(made.Name(), filepath.Join(dir, base)))
}

func fill(ctx context.Context, dir string, from fs.FS) error {
	if err := os.CopyFS(dir, from); err != nil {
		return fmt.Errorf("write what to install: %w", err)
	}
	// A registry that does not answer is given up, and npm says so, before ctx ends.
	npm := program(ctx, dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier",
		"--fetch-timeout=60000", "--fetch-retries=2")
	if output, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w", errors.Join(err, context.Cause(ctx), errors.New(string(output))))
	}
	return nil
}

// program is one that leaves nobody behind: when ctx ends it is killed with all that it
// has started, and whoever holds its output open is not waited for.
func program(ctx context.Context, dir, name string, arguments ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, arguments...)
	c.Dir, c.SysProcAttr, c.WaitDelay = dir, ownGroup(), time.Second
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}
