package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/argument"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
)

const releaseLong = `Give a tracked lease back unspent: what it was charged goes back, as far as it
can still be refunded. Releasing again gives the same answer and changes
nothing.

Releasing an id that is not known is an error, and is remembered: an acquire
with that id that was overtaken on the way is refused when it arrives.`

func newRelease(a *app) *cobra.Command {
	request := &quorleasev1.ReleaseRequest{}
	cmd := &cobra.Command{
		Use:     "release LEASE-ID",
		Short:   "Give a tracked lease back unspent",
		Long:    releaseLong,
		Example: `  quorlease release 000102030405060708090a0b0c0d0e0f`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			request.LeaseId = args[0]
			return a.release(c.Context(), request)
		},
	}
	cmd.Flags().StringVar(&request.Client, "client", "", "the `name` of who the work was for")
	return cmd
}

func (a *app) release(ctx context.Context, request *quorleasev1.ReleaseRequest) error {
	if err := a.checkLease(request.LeaseId); err != nil {
		return err
	}
	if err := argument.Client(request.Client); err != nil {
		return err
	}
	answer, err := answerOf(ctx, a, ask.Repeatable,
		ask.CallOf(quorleasev1.NewAdmissionClient, quorleasev1.AdmissionClient.Release, request))
	if err != nil {
		return err
	}
	return a.print(answer, func(w io.Writer) { leaseText(w, answer, nil) })
}
