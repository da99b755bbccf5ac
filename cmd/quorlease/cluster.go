package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/members"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

func newCluster(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Look at the nodes, and change who is one",
	}
	cmd.AddCommand(newClusterStatus(a))
	cmd.AddCommand(members.Commands(members.App{
		CheckFormat: func() error { return a.checkFormat() },
		Connect: func(hold time.Duration) (*ask.Nodes, error) {
			nodes, err := ask.Connect(a.endpoints, a.timeout)
			if err == nil {
				nodes.Wait(hold)
			}
			return nodes, err
		},
		Print: a.print, Stderr: a.stderr,
	})...)
	return cmd
}

func newClusterStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the nodes and who leads",
		Long: `Show the cluster as the node that answers sees it. It needs no quorum, so it
tells what is wrong when there is none.`,
		Example: `  quorlease cluster status
  quorlease cluster status --endpoints 127.0.0.1:7102 -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			answer, err := a.clusterStatus(c.Context())
			if err != nil {
				return err
			}
			return a.print(answer, func(w io.Writer) { statusText(w, answer) })
		},
	}
}

func (a *app) clusterStatus(ctx context.Context) (*quorleasev1.ClusterStatusResponse, error) {
	return answerOf(ctx, a, ask.Read,
		ask.CallOf(quorleasev1.NewClusterClient, quorleasev1.ClusterClient.Status, &quorleasev1.ClusterStatusRequest{}))
}

func statusText(w io.Writer, r *quorleasev1.ClusterStatusResponse) {
	leader := r.GetLeader()
	if leader == "" {
		leader = "none"
	}
	fmt.Fprintf(w, "cluster  %s\nleader   %s\nterm     %d\n\n",
		show.Dash(exit.Printable(r.GetClusterId())), exit.Printable(leader), r.GetTerm())
	rows := make([][]string, 0, len(r.GetNodes()))
	for _, n := range r.GetNodes() {
		rows = append(rows, []string{
			n.GetId(), n.GetRole().String(), show.YesNo(n.GetHealthy()),
			n.GetGrpc(), n.GetPeer(), n.GetHttp(), n.GetVersion(),
		})
	}
	if len(rows) == 0 {
		fmt.Fprintln(w, "The node that answers is in no cluster yet; its log says what it waits for.")
		return
	}
	show.Table(w, "NODE ROLE HEALTHY GRPC PEER HTTP VERSION", rows)
}
