package main

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/argument"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

func newUsage(a *app) *cobra.Command {
	request := &quorleasev1.UsageBookQueryRequest{}
	since := 24 * time.Hour
	cmd := &cobra.Command{
		Use:   "usage --by client|key|limit|team",
		Short: "Show who was granted and denied how much",
		Long:  show.UsageLong,
		Example: `  quorlease usage --by client
  quorlease usage --by team --since 744h -o csv
  quorlease usage --by key --limit team --from 2026-11-01 --to 2026-12-01 -o csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(formatCSV); err != nil {
				return err
			}
			if !slices.Contains(usageBy, request.By) {
				return exit.Usagef("--by %q is none of %s", request.By, strings.Join(usageBy, ", "))
			}
			if request.Top < 1 || request.Top > maxTop {
				return exit.Usagef("--top %d is outside 1 to %d", request.Top, maxTop)
			}
			from, err := argument.Period(request.From, request.To, c.Flags().Changed("since"))
			if err != nil {
				return err
			}
			if from.IsZero() {
				if request.Hours, err = argument.Hours(since, time.Now()); err != nil {
					return err
				}
			}
			// Nodes have so long to read their books.
			a.wait = time.Duration(cmp.Or(request.Hours, argument.HoursMost)) * 20 * time.Millisecond
			answer, err := answerOf(c.Context(), a, ask.Read,
				ask.CallOf(quorleasev1.NewUsageBookClient, quorleasev1.UsageBookClient.Query, request))
			if err != nil {
				return err
			}
			return a.usage(request.By, from, answer)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.By, "by", "", "`name` the rows by client, key, limit or team")
	flags.DurationVar(&since, "since", since, "how far back, 1h to 744h")
	flags.StringVar(&request.From, "from", "",
		"instead of --since: the `beginning`, a day like 2026-11-01 or an hour like 2026-11-01T13:00:00Z, UTC")
	flags.StringVar(&request.To, "to", "", "with --from: the `end`, which is no part of it, or until now")
	flags.StringVar(&request.Limit, "limit", "", "only what was charged to this `limit`")
	flags.Uint32Var(&request.Top, "top", maxTop, "show at most this `many`, 1 to 1000; the rest together")
	setting.Range(flags, "top", "1 to 1000")
	// It fails only where there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc("by",
		cobra.FixedCompletions(usageBy, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// usageBy are what rows may be named by.
var usageBy = []string{"client", "key", "limit", "team"}

func (a *app) usage(by string, from time.Time, answer *quorleasev1.UsageBookQueryResponse) error {
	if a.format != formatJSON {
		show.UsageMissing(a.stderr, from, answer)
	}
	if a.format == formatCSV {
		var out bytes.Buffer
		show.UsageCSV(&out, by, answer)
		return a.write(out.Bytes())
	}
	return a.print(answer, func(w io.Writer) { show.Usage(w, by, answer) })
}
