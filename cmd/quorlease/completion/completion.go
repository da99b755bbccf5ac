// Package completion writes completion scripts, and says what shells may offer.
package completion

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// New makes the command that writes the scripts.
func New() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Write a completion script for bash, zsh, fish or powershell",
		Long: `Write a completion script to standard output.

  bash        source <(quorlease completion bash)
  zsh         quorlease completion zsh > "${fpath[1]}/_quorlease"
  fish        quorlease completion fish | source
  powershell  quorlease completion powershell | Out-String | Invoke-Expression`,
		Example:   "  quorlease completion bash",
		ValidArgs: shells,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(c *cobra.Command, args []string) error {
			root, out := c.Root(), c.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			}
			return fmt.Errorf("no completion script for %s", args[0])
		},
	}
}

// Offer says what a shell may offer for a command where it knows nothing better:
// file names for flags that take one, formats for flags of a format, and nothing
// else. No argument is a file.
func Offer(cmd *cobra.Command, formats ...string) {
	if cmd.ValidArgs == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		offer := cobra.NoFileCompletions
		switch value, _ := pflag.UnquoteUsage(f); value {
		case "file":
			return
		case "directory":
			// It fails only where there is no such flag.
			_ = cmd.MarkFlagDirname(f.Name)
			return
		case "format":
			offer = cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)
		}
		// It fails only where it was done before: for the flags of all commands.
		_ = cmd.RegisterFlagCompletionFunc(f.Name, offer)
	})
}
