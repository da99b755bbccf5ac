package peer

import (
	"context"
	"debug/buildinfo"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// versionWait is how long a program may take to say its version.
const versionWait = 2 * time.Second

var versionNumber = regexp.MustCompile(`\d+\.\d+\.\d+[-+.\w]*`)

// Version is what a program says of itself, or what it was built from where it was
// built by Go's module proxy. Empty: neither.
func Version(ctx context.Context, path string) string {
	if info, err := buildinfo.ReadFile(path); err == nil && strings.HasPrefix(info.Main.Version, "v") {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return ""
	}
	return versionNumber.FindString(string(out))
}
