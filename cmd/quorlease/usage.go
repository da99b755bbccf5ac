package main

import (
	"bytes"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/argument"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

const usageLong = `Show what was granted and denied in the last hours, by client, by limit or by team
(the attribute team of an acquire), for each limit and dimension. GRANTS and
DENIALS are acquires, GRANTED and DENIED the tokens that they asked for; a
settlement that gives some back changes nothing here. The first hour counts from
its beginning.

One node answers for all: those that did not answer are named on standard error,
or in JSON as missing. (other) is what is beyond --top, or beyond the names that a
node keeps.`

func newUsage(a *app) *cobra.Command {
	request := &quorleasev1.UsageBookQueryRequest{}
	since := 24 * time.Hour
	cmd := &cobra.Command{
		Use:   "usage --by client|limit|team",
		Short: "Show who was granted and denied how much",
		Long:  usageLong,
		Example: `  quorlease usage --by client
  quorlease usage --by team --since 744h -o csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(formatCSV); err != nil {
				return err
			}
			if names := []string{"client", "limit", "team"}; !slices.Contains(names, request.By) {
				return exit.Usagef("--by %q is none of client, limit, team", request.By)
			}
			if request.Top < 1 || request.Top > maxTop {
				return exit.Usagef("--top %d is outside 1 to %d", request.Top, maxTop)
			}
			var err error
			if request.Hours, err = argument.Hours(since, time.Now()); err != nil {
				return err
			}
			answer, err := answerOf(c.Context(), a, ask.Read,
				ask.CallOf(quorleasev1.NewUsageBookClient, quorleasev1.UsageBookClient.Query, request))
			if err != nil {
				return err
			}
			return a.usage(request.By, answer)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.By, "by", "", "`name` the rows by client, limit or team")
	flags.DurationVar(&since, "since", since, "how far back, 1h to 744h")
	flags.Uint32Var(&request.Top, "top", maxTop, "show at most this `many`, 1 to 1000; the rest together")
	setting.Range(flags, "top", "1 to 1000")
	// It fails only where there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc("by",
		cobra.FixedCompletions([]string{"client", "limit", "team"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) usage(by string, answer *quorleasev1.UsageBookQueryResponse) error {
	if a.format != formatJSON {
		show.UsageMissing(a.stderr, answer)
	}
	if a.format == formatCSV {
		var out bytes.Buffer
		show.UsageCSV(&out, by, answer)
		return a.write(out.Bytes())
	}
	return a.print(answer, func(w io.Writer) { show.Usage(w, by, answer) })
}
