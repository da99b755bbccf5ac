package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

// maxTop bounds --top.
const maxTop = 1000

func newClients(a *app) *cobra.Command {
	request := &quorleasev1.ClientsListRequest{}
	cmd := &cobra.Command{
		Use:   "clients",
		Short: "Show who asks, those with the most retries first",
		Long: `Show the clients that asked within the window of their retry budget: how many
requests were admitted, how many of them were retries, how many are left of those
that the budget allows, since when a client is over its budget (OVER_FOR), and when
it gets through again (FREES_IN). MODE is the budget's.

THROTTLED is how often a provider throttled it in the last hour. DENIED is how
often it was told to wait, EARLY after how many of those it did not, and HONOURS
whether it does: no more than one in twenty early. ERROR is the commonest one
that was reported for it. A dash is unknown or none.`,
		Example: `  quorlease clients --top 5`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if request.Top < 1 || request.Top > maxTop {
				return exit.Usagef("--top %d is outside 1 to %d", request.Top, maxTop)
			}
			return a.clients(c.Context(), request)
		},
	}
	cmd.Flags().Uint32Var(&request.Top, "top", 20, "show at most this `many`, 1 to 1000")
	setting.Range(cmd.Flags(), "top", "1 to 1000")
	return cmd
}

func (a *app) clients(ctx context.Context, request *quorleasev1.ClientsListRequest) error {
	answer, err := answerOf(ctx, a, ask.Read,
		ask.CallOf(quorleasev1.NewClientsClient, quorleasev1.ClientsClient.List, request))
	if err != nil {
		return err
	}
	return a.print(answer, func(w io.Writer) {
		rows := make([][]string, 0, len(answer.GetClients()))
		for _, c := range answer.GetClients() {
			rows = append(rows, []string{
				c.GetClient(), show.Number(c.GetRequests()), show.Number(c.GetRetries()),
				show.Percent(c.GetFractionPpm() / 100), left(c),
				c.GetRetryBudget(), show.YesNo(c.GetOverBudget()), show.Duration(c.GetOverFor()), show.Duration(c.GetFreesIn()),
				modeOf(c.GetMode()), show.Number(c.GetThrottled()), show.Number(c.GetDenied()), show.Number(c.GetEarly()),
				honours(c), c.GetError(),
			})
		}
		show.Table(w, "CLIENT REQUESTS RETRIES FRACTION RETRIES_LEFT RETRY_BUDGET OVER_BUDGET OVER_FOR FREES_IN MODE "+
			"THROTTLED DENIED EARLY HONOURS ERROR", rows)
		fmt.Fprintf(w, "%d of %d clients\n", len(rows), answer.GetTotal())
	})
}

// left is what is left of the retries that the budget allows in its window.
func left(c *quorleasev1.ClientStatus) string {
	if c.GetRetryBudget() == "" {
		return ""
	}
	return show.Number(c.GetRetriesLeft()) + " of " + show.Number(c.GetRetriesAllowed())
}

// modeOf is a mode as a limits file spells it, empty where there is none.
func modeOf(m quorleasev1.Mode) string {
	if m == quorleasev1.Mode_MODE_UNSPECIFIED {
		return ""
	}
	return strings.ToLower(m.String())
}

// honours says whether a client waits as long as it is told, empty where nobody
// can say.
func honours(c *quorleasev1.ClientStatus) string {
	if c.HonoursWaits == nil {
		return ""
	}
	return show.YesNo(c.GetHonoursWaits())
}
