package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A shell offers what fits, and the names of files only where a file is asked
// for.
func TestCompletion(t *testing.T) {
	t.Parallel()
	const (
		nothing     = cobra.ShellCompDirectiveNoFileComp
		files       = cobra.ShellCompDirectiveDefault
		directories = cobra.ShellCompDirectiveFilterDirs
	)
	for line, want := range map[string]struct {
		offers string
		then   cobra.ShellCompDirective
	}{
		"limits ro":                   {"rollback", nothing},
		"completion ":                 {"bash zsh fish powershell", nothing},
		"acquire ":                    {"", nothing},
		"acquire --class ":            {"", nothing},
		"acquire -o ":                 {"text json", nothing},
		"top --top ":                  {"", nothing},
		"-o ":                         {"text json", nothing},
		"--endpoints ":                {"", nothing},
		"limits apply -f ":            {"", files},
		"dev --limits ":               {"", files},
		"plan -f ":                    {"", files},
		"plan --cost ":                {"", nothing},
		"doctor -f ":                  {"", files},
		"serve --config ":             {"", files},
		"gateway -c ":                 {"", files},
		"gateway --listen ":           {"", nothing},
		"serve --data ":               {"", directories},
		"bench contention --html ":    {"", files},
		"bench contention --callers ": {"", nothing},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			got := command(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)
			lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
			last := len(lines) - 1
			for i := range lines {
				lines[i], _, _ = strings.Cut(lines[i], "\t")
			}
			if offers := strings.Join(lines[:last], " "); offers != want.offers || lines[last] != fmt.Sprintf(":%d", want.then) {
				t.Errorf("offers %q and directive %s, want %q and %d", offers, lines[last], want.offers, want.then)
			}
		})
	}
}
