package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/argument"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

const keysLong = `Show the keys of a limit of which least is left. LEFT is level less debt as a part
of the burst, of the dimension that has least; it is negative in debt. Then come
those with most debt, with most open leases, and those that a provider's answers
have blocked, paused or slowed down. A key that was never charged, or is full
again, is not counted.`

func newKeys(a *app) *cobra.Command {
	request := &quorleasev1.LimitsKeysRequest{}
	cmd := &cobra.Command{
		Use:   "keys LIMIT",
		Short: "Show the most spent keys of a limit",
		Long:  keysLong,
		Example: `  quorlease keys llm --top 5
  quorlease keys llm --prefix trial- -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if request.Top < 1 || request.Top > maxTop {
				return exit.Usagef("--top %d is outside 1 to %d", request.Top, maxTop)
			}
			if err := errors.Join(argument.LimitName(args[0]), argument.Prefix(request.Prefix)); err != nil {
				return err
			}
			request.Limit = args[0]
			answer, err := answerOf(c.Context(), a, ask.Read,
				ask.CallOf(quorleasev1.NewLimitsClient, quorleasev1.LimitsClient.Keys, request))
			if err != nil {
				return err
			}
			return a.print(answer, func(w io.Writer) { show.Keys(w, answer) })
		},
	}
	flags := cmd.Flags()
	flags.Uint32Var(&request.Top, "top", 20, "show at most this `many`, 1 to 1000")
	flags.StringVar(&request.Prefix, "prefix", "", "only keys that begin with this `text`")
	flags.BoolVar(&request.Stale, "stale", false, "answer from the node's own replica, which may lag")
	setting.Range(flags, "top", "1 to 1000")
	return cmd
}
