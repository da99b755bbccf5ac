package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/argument"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

const settleLong = `Report what a tracked lease really used. What was asked for and not used goes
back, what was used beyond it is taken or becomes debt, and the lease ends.

DIM=USED speaks of every charge of that dimension, LIMIT[/KEY] DIM=USED of one.
A charge that is not named counts as used in full. Settling again with the same
numbers gives the same answer and changes nothing.

With --progress the numbers are what was used so far: an excess is booked,
nothing goes back, and the lease stays open.`

func newSettle(a *app) *cobra.Command {
	request := &quorleasev1.SettleRequest{}
	cmd := &cobra.Command{
		Use:   "settle LEASE-ID [DIM=USED …] [LIMIT[/KEY] DIM=USED … …]",
		Short: "Report the real usage of a tracked lease, and end it",
		Long:  settleLong,
		Example: `  quorlease settle 000102030405060708090a0b0c0d0e0f input_tokens=800 output_tokens=120
  quorlease settle 000102030405060708090a0b0c0d0e0f llm/team-a input_tokens=800`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			request.LeaseId = args[0]
			if request.Used, err = argument.Usage(args[1:]); err != nil {
				return err
			}
			return a.settle(c.Context(), request)
		},
	}
	cmd.Flags().BoolVar(&request.Progress, "progress", false, "used so far: the lease stays open")
	return cmd
}

func (a *app) settle(ctx context.Context, request *quorleasev1.SettleRequest) error {
	if err := a.checkLease(request.LeaseId); err != nil {
		return err
	}
	answer, err := answerOf(ctx, a, ask.Repeatable,
		ask.CallOf(quorleasev1.NewAdmissionClient, quorleasev1.AdmissionClient.Settle, request))
	if err != nil {
		return err
	}
	return a.print(answer, func(w io.Writer) { leaseText(w, answer, answer.GetTtl()) })
}

// checkLease is what every command about one lease checks first.
func (a *app) checkLease(id string) error {
	if err := a.checkFormat(); err != nil {
		return err
	}
	return argument.CheckLeaseID(id)
}

// leaseAnswer is what the answers to settle, release and renew have in common.
type leaseAnswer interface {
	GetState() quorleasev1.LeaseState
	GetRepeatedRequest() bool
	GetSettlements() []*quorleasev1.Settlement
}

// leaseText writes the state of the lease in the first line and what became of
// each charge below it. An ended lease has no ttl to show.
func leaseText(w io.Writer, r leaseAnswer, ttl *durationpb.Duration) {
	fmt.Fprint(w, r.GetState())
	if ttl.AsDuration() > 0 {
		fmt.Fprintf(w, " ttl=%s", show.Duration(ttl))
	}
	if r.GetRepeatedRequest() {
		fmt.Fprint(w, " repeated=yes")
	}
	fmt.Fprintln(w)
	rows := make([][]string, 0, len(r.GetSettlements()))
	for _, s := range r.GetSettlements() {
		rows = append(rows, []string{
			s.GetLimit(), s.GetKey(), s.GetDimension(), show.Number(s.GetAmount()), show.Number(s.GetUsed()),
			show.Number(s.GetRefunded()), show.Number(s.GetExcess()), show.Number(s.GetWrittenOff()),
		})
	}
	if len(rows) > 0 {
		show.Table(w, "LIMIT KEY DIMENSION AMOUNT USED REFUNDED EXCESS WRITTEN_OFF", rows)
	}
}
