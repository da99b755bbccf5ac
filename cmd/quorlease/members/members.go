// Package members has the commands that change who is a member of the cluster.
package members

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

// App is what the commands need of the program. All of it is required, and called
// when a command runs.
type App struct {
	CheckFormat func() error
	// Connect prepares to ask nodes that may hold a question for so long.
	Connect func(hold time.Duration) (*ask.Nodes, error)
	Print   func(m proto.Message, text func(io.Writer)) error
	// Stderr hears what is waited for.
	Stderr io.Writer
}

// Commands are add, remove, promote, demote and transfer-leader.
func Commands(app App) []*cobra.Command {
	return []*cobra.Command{
		newAdd(app), newRemove(app), newPromote(app), newDemote(app), newTransfer(app),
	}
}

// hold is how long a change may take: a leader that is to go hands over first, and
// the next one makes the change.
const hold = 8 * time.Second

// change asks one question and prints what came of it.
func change[A proto.Message](
	ctx context.Context, app App, kind ask.Kind, call ask.Call[A], text func(A) string,
) error {
	answer, err := once(ctx, app, kind, call)
	if err != nil {
		return ask.Explain(err)
	}
	return app.Print(answer, func(w io.Writer) { fmt.Fprintln(w, text(answer)) })
}

func once[A proto.Message](ctx context.Context, app App, kind ask.Kind, call ask.Call[A]) (answer A, err error) {
	if err := app.CheckFormat(); err != nil {
		return answer, err
	}
	nodes, err := app.Connect(hold)
	if err != nil {
		return answer, err
	}
	defer nodes.Close()
	return ask.Answer(ctx, nodes, kind, call)
}

// told says what came of a change, or that it was so before.
func told(changed bool, now, before string) string {
	if changed {
		return now
	}
	return before + "; nothing changed"
}

func newAdd(app App) *cobra.Command {
	return &cobra.Command{
		Use:   "add ID PEER",
		Short: "Make a learner of a node that waits to join",
		Long: `Make a learner of the node called ID that advertises the peer address PEER. It
must run, with --learner, and wait: only it knows its incarnation. A learner has
everything but a vote; see promote.

A member that came back at another address is followed there by adding it again.`,
		Example: `  quorlease serve --id n4 --data ./n4 --learner --join 10.0.0.1:7201,10.0.0.2:7201 …
  quorlease cluster add n4 10.0.0.4:7201`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return change(c.Context(), app, ask.Repeatable, ask.CallOf(quorleasev1.NewClusterClient,
				quorleasev1.ClusterClient.Add, &quorleasev1.ClusterAddRequest{Id: args[0], Peer: args[1]}),
				func(r *quorleasev1.ClusterAddResponse) string {
					return told(r.GetChanged(), args[0]+" is a member at "+args[1], args[0]+" was a member at "+args[1]+" before")
				})
		},
	}
}

func newRemove(app App) *cobra.Command {
	return &cobra.Command{
		Use:   "remove ID",
		Short: "Take a member out",
		Long: `Take a member out of the cluster, whether it runs or not. Its process ends with
exit code 4, and does not start again before its data directory is empty. A
leader hands over first.

It is refused where fewer healthy voters would be left than a majority needs.`,
		Example: `  quorlease cluster remove n2`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return change(c.Context(), app, ask.Once, ask.CallOf(quorleasev1.NewClusterClient,
				quorleasev1.ClusterClient.Remove, &quorleasev1.ClusterRemoveRequest{Id: args[0]}),
				func(r *quorleasev1.ClusterRemoveResponse) string {
					return told(r.GetChanged(), args[0]+" is no member any more", args[0]+" was none before")
				})
		},
	}
}

func newPromote(app App) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "promote ID",
		Short: "Give a learner a vote",
		Long: `Give a learner a vote. It must have been fewer than 250 entries behind the leader
for ten seconds, else what is missing is said and nothing changes; --wait waits
for that.`,
		Example: `  quorlease cluster promote n4
  quorlease cluster promote n4 --wait 1m`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if wait < 0 {
				return exit.Usagef("--wait %s is negative", wait)
			}
			return promote(c.Context(), app, args[0], wait)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait until the learner keeps up")
	return cmd
}

func newDemote(app App) *cobra.Command {
	return &cobra.Command{
		Use:   "demote ID",
		Short: "Take a voter's vote",
		Long: `Make a learner of a voter: it stays a member and counts in no majority. A leader
hands over first. It is refused where fewer healthy voters would be left than a
majority needs.`,
		Example: `  quorlease cluster demote n3`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return change(c.Context(), app, ask.Repeatable, ask.CallOf(quorleasev1.NewClusterClient,
				quorleasev1.ClusterClient.Demote, &quorleasev1.ClusterDemoteRequest{Id: args[0]}),
				func(r *quorleasev1.ClusterDemoteResponse) string {
					return told(r.GetChanged(), args[0]+" is a learner", args[0]+" was a learner before")
				})
		},
	}
}

func newTransfer(app App) *cobra.Command {
	return &cobra.Command{
		Use:   "transfer-leader [ID]",
		Short: "Make another voter the leader",
		Long: `Make the voter called ID the leader, or without ID the one that is least behind.
Nothing is decided while it changes hands, for some tenths of a second.`,
		Example: `  quorlease cluster transfer-leader
  quorlease cluster transfer-leader n2`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			request := &quorleasev1.ClusterTransferLeadershipRequest{}
			if len(args) > 0 {
				request.Id = args[0]
			}
			return change(c.Context(), app, ask.Once, ask.CallOf(quorleasev1.NewClusterClient,
				quorleasev1.ClusterClient.TransferLeadership, request),
				func(r *quorleasev1.ClusterTransferLeadershipResponse) string {
					leader := r.GetLeader()
					if leader == "" {
						leader = "another node"
					}
					return told(r.GetChanged(), leader+" leads", leader+" led before")
				})
		},
	}
}
