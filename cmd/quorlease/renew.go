package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/argument"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

const renewLong = `Prolong the time to settle a tracked lease, never the time to spend it. What was
used so far may be reported with it, in the manner of settle --progress.`

// The bounds of a renewal.
const (
	shortestTTL = time.Millisecond
	longestTTL  = 24 * time.Hour
)

func newRenew(a *app) *cobra.Command {
	var ttl time.Duration
	request := &quorleasev1.RenewRequest{}
	cmd := &cobra.Command{
		Use:   "renew LEASE-ID [DIM=USED …] [LIMIT[/KEY] DIM=USED … …]",
		Short: "Prolong the time to settle a tracked lease",
		Long:  renewLong,
		Example: `  quorlease renew 000102030405060708090a0b0c0d0e0f --ttl 2m
  quorlease renew 000102030405060708090a0b0c0d0e0f output_tokens=350`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			request.LeaseId = args[0]
			if request.Used, err = argument.Usage(args[1:]); err != nil {
				return err
			}
			if ttl < shortestTTL || ttl > longestTTL {
				return exit.Usagef("--ttl %s is outside %s to %s", ttl, shortestTTL, longestTTL)
			}
			if c.Flags().Changed("sequence") && request.Sequence == 0 {
				return exit.Usagef("--sequence 0 is not positive")
			}
			if request.Sequence == 0 {
				// It has to grow from one renewal of a lease to the next, and
				// stay the same over the endpoints that are asked.
				request.Sequence = uint64(time.Now().UnixNano())
			}
			request.Ttl = durationpb.New(ttl)
			return a.renew(c.Context(), request)
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 30*time.Second, "time to settle, from now: 1ms to 24h")
	cmd.Flags().Uint64Var(&request.Sequence, "sequence", 0,
		"`number` of this renewal, higher than the one before. Nanoseconds of the wall clock without it")
	return cmd
}

func (a *app) renew(ctx context.Context, request *quorleasev1.RenewRequest) error {
	if err := a.checkLease(request.LeaseId); err != nil {
		return err
	}
	answer, err := answerOf(ctx, a, ask.Repeatable,
		ask.CallOf(quorleasev1.NewAdmissionClient, quorleasev1.AdmissionClient.Renew, request))
	if err != nil {
		return err
	}
	return a.print(answer, func(w io.Writer) { leaseText(w, answer, answer.GetTtl()) })
}
