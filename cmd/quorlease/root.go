package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/cmd/quorlease/completion"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

// app is what every subcommand shares: the streams, the environment and the
// flags of the root. It is built anew for each run, so that tests may run side
// by side.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)

	// endpoints are client addresses, tried in this order.
	endpoints []string
	// timeout bounds one question over all endpoints.
	timeout time.Duration
	// wait is how long a node may hold a question before it answers, beside that.
	wait time.Duration
	// format is text, json, and for some commands yaml.
	format string
}

// defaultEndpoints are the nodes of `dev` with its default ports.
var defaultEndpoints = []string{"127.0.0.1:7101", "127.0.0.1:7102", "127.0.0.1:7103"}

const rootLong = `Quorlease answers "may this client send this much to that provider now?" from
three nodes that agree, so that the shared limiter is never a single point of
failure.

Only the answer goes to standard output. Errors are one line on standard error.

Exit codes:
  0  yes, or done
  1  error: the question was not answered (no node, no quorum, unknown limit …)
  2  usage: the command line is wrong
  3  denied
  4  this node was removed from its cluster
  5  this node stopped to protect its data`

// run executes one command line and returns the exit code. It reads no global
// state but the environment.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, lookupEnv: os.LookupEnv}
	root := newRoot(a) //nolint:contextcheck // the commands take theirs from ExecuteContext
	root.SetArgs(args)
	return exit.Report(root.ExecuteContext(ctx), stderr)
}

// newRoot builds the command tree.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "quorlease",
		Short: "A replicated authority for rate limits and leases",
		Long:  rootLong,
	}
	flags := root.PersistentFlags()
	flags.StringSliceVar(&a.endpoints, "endpoints", defaultEndpoints,
		"client `addresses` of nodes, tried in this order")
	flags.DurationVar(&a.timeout, "timeout", 2*time.Second,
		"how long to wait for an answer, over all endpoints")
	flags.StringVarP(&a.format, "output", "o", formatText, "`format` of the answer: text or json")
	setting.FromEnvironment(flags)

	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.AddCommand(
		newDev(a), newServe(a), newGateway(a),
		newAcquire(a), newSettle(a), newRelease(a), newRenew(a),
		newLimits(a), newInspect(a), newKeys(a), newAdjust(a),
		newClients(a), newUsage(a), newEvents(a), newTop(a), newCluster(a), newBench(a),
		newPlan(a), newDoctor(a),
		newVersion(a), completion.New(),
	)
	prepare(a, root)
	return root
}

// prepare gives every command of the tree the same manners: errors are
// returned instead of printed, the environment fills in flags that were not
// given, a group without a subcommand shows its help, and shells complete alike.
func prepare(a *app, cmd *cobra.Command) {
	cmd.SilenceErrors = true
	cmd.SilenceUsage = true
	cmd.DisableFlagsInUseLine = true
	completion.Offer(cmd, formatText, formatJSON)
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return exit.Usagef("%s; see `%s --help`", setting.FlagError(err), c.CommandPath())
	})
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return exit.Usagef("%s; usage: %s", exit.OneLine(err.Error()), c.UseLine())
			}
			return nil
		}
	}
	if action := cmd.RunE; action != nil {
		cmd.RunE = func(c *cobra.Command, args []string) error {
			if err := setting.Environment(c.Flags(), a.lookupEnv); err != nil {
				return err
			}
			return action(c, args)
		}
	}
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = runGroup
	}
	for _, sub := range cmd.Commands() {
		prepare(a, sub)
	}
}

// runGroup is what a command does that only has subcommands.
func runGroup(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	hint := fmt.Sprintf("`%s --help` lists what there is", c.CommandPath())
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return exit.Usagef("unknown command %q for %q; %s", args[0], c.CommandPath(), hint)
}

// refuseClientFlags makes a command that asks no node refuse the flags that
// say how to ask one, instead of ignoring them in silence.
func refuseClientFlags(c *cobra.Command) error {
	return refuseFlags(c, "which asks no node", "endpoints", "timeout", "output")
}

// refuseFlags refuses flags of the root that a command has no use for.
func refuseFlags(c *cobra.Command, why string, names ...string) error {
	for _, name := range names {
		if f := c.Root().PersistentFlags().Lookup(name); f != nil && f.Changed {
			return exit.Usagef("--%s does not apply to `%s`, %s", name, c.CommandPath(), why)
		}
	}
	return nil
}
