package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// releaseVersion is set by the linker for a release (-X main.releaseVersion=…).
// A build without it tells what the module system knows.
var releaseVersion string

// build says what this program is.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Say which build this is",
		Long:    "Say which build this is. It asks no node; `cluster status` shows their versions.",
		Example: "  quorlease version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			b := thisBuild()
			if a.format == formatJSON {
				out, err := json.MarshalIndent(b, "", "  ")
				if err != nil {
					return fmt.Errorf("print the answer: %w", err)
				}
				return a.write(append(out, '\n'))
			}
			line := fmt.Sprintf("quorlease %s", b.Version)
			if b.Commit != "" {
				line += " commit " + b.Commit
			}
			if b.Modified {
				line += " modified"
			}
			return a.write(fmt.Appendf(nil, "%s %s %s\n", line, b.Go, b.Platform))
		},
	}
}

func thisBuild() build {
	b := build{Version: releaseVersion, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
		if b.Version == "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	return b
}
