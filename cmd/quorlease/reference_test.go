package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

// referenceHead is what no command says; ~ stands for a backquote.
const referenceHead = `# The command line

One binary, ~quorlease~, runs nodes and asks them. This page is written by a test from the commands themselves;
~go test ./cmd/quorlease -run Reference -update~ rewrites it.

- **Answers** go to standard output, and nothing else does. Errors are one line each on standard error.
- **Settings** come from the command line, then the environment, then (for ~serve~) a YAML file, then the default. The
  names are the same everywhere: ~--log-level~ is ~QUORLEASE_LOG_LEVEL~ and ~log-level~. The file of ~gateway~ has
  [words of its own](gateway-file.md).
- **Endpoints** are tried in order. A dead one costs next to nothing, a hung one an equal part of what is left of
  ~--timeout~, then the next is asked. After an answer that got lost only a question that has the effect of one however
  often it is asked goes to the next: reading, settling, releasing, renewing, and acquiring with ~--track~.
- **JSON** (~-o json~) is the protocol's: its field names, 64-bit numbers as strings, defaults written out, durations as
  ~"1.500s"~. Events are one object a line.

## Exit codes

| code | meaning |
|---|---|
| 0 | yes, or done |
| 1 | error: the question was not answered (no node, no quorum, unknown limit, a file that is wrong) |
| 2 | usage: the command line is wrong, or for ~serve~ and ~gateway~ a setting |
| 3 | denied |
| 4 | this node was removed from its cluster |
| 5 | this node stopped to protect its data |

~limits diff~ is different: 0 equal, 1 differs, 2 error. So is ~doctor~: 0 nothing found, 1 something found, 2 error.
Without an answer there is never a yes: no quorum is an error.

`

// TestReference keeps docs/reference/cli.md what the commands are.
func TestReference(t *testing.T) {
	t.Parallel()
	a := &app{lookupEnv: func(string) (string, bool) { return "", false }}
	var page bytes.Buffer
	page.WriteString(strings.ReplaceAll(referenceHead, "~", "`"))
	root := newRoot(a)
	root.InitDefaultHelpCmd()
	fmt.Fprintf(&page, "## Flags of every command that asks nodes\n\n%s\n", flagTable(root.PersistentFlags()))
	writeReference(&page, root)
	path := filepath.Join("..", "..", "docs", "reference", "cli.md")
	got := strings.TrimRight(page.String(), "\n") + "\n"
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is out of date (-want +got); `go test -update` rewrites it:\n%s", path, diff)
	}
}

// writeReference writes the commands below one, depth first, in their order.
func writeReference(page *bytes.Buffer, parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if cmd.Name() == "help" || cmd.Hidden {
			continue
		}
		// A group has no examples, and does nothing by itself.
		if cmd.HasSubCommands() && cmd.Example == "" {
			writeReference(page, cmd)
		}
		if cmd.HasSubCommands() && flagTable(cmd.LocalNonPersistentFlags()) == "" {
			// It lists them, and does nothing else.
			continue
		}
		long := cmd.Long
		if long == "" {
			long = cmd.Short + "."
		}
		fmt.Fprintf(page, "## %s\n\n```\n%s\n```\n\n%s\n\n", cmd.CommandPath(), cmd.UseLine(), markdown(long))
		if flags := flagTable(cmd.LocalNonPersistentFlags()); flags != "" {
			fmt.Fprintf(page, "%s\n", flags)
		}
		if cmd.Example != "" {
			fmt.Fprintf(page, "```sh\n%s\n```\n\n", unindent(cmd.Example))
		}
		writeReference(page, cmd)
	}
}

// markdown keeps the indented parts of a help text together.
func markdown(long string) string {
	var out []string
	code := false
	for line := range strings.SplitSeq(long, "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != code {
			out = append(out, "```")
			code = indented
		}
		out = append(out, strings.TrimPrefix(line, "  "))
	}
	if code {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}

func flagTable(flags *pflag.FlagSet) string {
	var rows strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		if kind != "" {
			name += " " + kind
		}
		variable, byDefault := "", strings.Trim(f.DefValue, "[]")
		if setting.HasEnvironment(f) {
			variable = "`" + setting.EnvironmentName(f.Name) + "`"
		}
		if byDefault != "" {
			byDefault = "`" + byDefault + "`"
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", name, strings.ReplaceAll(usage, "|", `\|`), byDefault, variable)
	})
	if rows.Len() == 0 {
		return ""
	}
	return "| flag | meaning | default | environment |\n|---|---|---|---|\n" + rows.String()
}
