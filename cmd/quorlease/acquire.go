package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/argument"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

const acquireLong = `Ask for every charge or none. The answer is GRANTED, or DENIED with the reason
and how long to wait; a denial changes nothing and has exit code 3.

LIMIT[/KEY] is followed by what is asked of it; more limits may follow, each
with amounts of its own. Without DIM=AMOUNT one request is charged.

A lease that is tracked can be settled, renewed and released afterwards, and
asking again with the same --lease-id gives the same answer instead of a second
charge.`

const acquireExample = `  quorlease acquire demo
  quorlease acquire llm/team-a requests=1 input_tokens=1200 output_tokens=400
  quorlease acquire llm/team-a input_tokens=1200 demo requests=1 --track
  quorlease acquire demo --client batch-7 --attempt 2
  quorlease acquire demo --track --lease-id 000102030405060708090a0b0c0d0e0f`

func newAcquire(a *app) *cobra.Command {
	request := &quorleasev1.AcquireRequest{}
	cmd := &cobra.Command{
		Use:     "acquire LIMIT[/KEY] [DIM=AMOUNT …] [LIMIT[/KEY] [DIM=AMOUNT …] …]",
		Short:   "Ask for a lease: GRANTED, or DENIED with the reason",
		Long:    acquireLong,
		Example: acquireExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			charges, err := argument.Charges(args)
			if err != nil {
				return err
			}
			request.Charges = charges
			return a.acquire(c.Context(), request)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.Client, "client", "", "the `name` of who the work is for; its retry budget counts")
	flags.StringVar(&request.Class, "class", "", "priority `class`; without it each limit's first")
	flags.Uint32Var(&request.Attempt, "attempt", 0, "retries already made for this piece of work")
	flags.BoolVar(&request.Track, "track", false, "keep the lease, to be settled, renewed or released")
	flags.StringVar(&request.LeaseId, "lease-id", "",
		"32 lower-case `hex` digits; the same again gives the same answer. Drawn at random without it")
	return cmd
}

func (a *app) acquire(ctx context.Context, request *quorleasev1.AcquireRequest) error {
	if err := a.checkFormat(); err != nil {
		return err
	}
	if err := argument.Client(request.Client); err != nil {
		return err
	}
	if request.Class != "" {
		if problem := limitsfile.NameProblem(request.Class); problem != "" {
			return exit.Usagef("--class: %s", problem)
		}
	}
	if request.LeaseId != "" {
		if err := argument.CheckLeaseID(request.LeaseId); err != nil {
			return err
		}
	} else if request.Track {
		// Drawn here, before the first attempt, so that every endpoint is asked
		// for the same lease.
		request.LeaseId = argument.NewLeaseID()
	}
	kind := ask.Once
	if request.Track {
		kind = ask.Repeatable
	}
	answer, err := answerOf(ctx, a, kind,
		ask.CallOf(quorleasev1.NewAdmissionClient, quorleasev1.AdmissionClient.Acquire, request))
	if err != nil {
		var open *ask.OutcomeUnknownError
		if errors.As(err, &open) {
			return fmt.Errorf("%w; %s", err, repeatAdvice(request))
		}
		return err
	}
	// The rules for a client that decides by itself: a command never does.
	answer.Fallbacks = nil
	if err := a.print(answer, func(w io.Writer) { acquireText(w, answer) }); err != nil {
		return err
	}
	if answer.GetDecision() != quorleasev1.Decision_GRANTED {
		return exit.ErrDenied
	}
	return nil
}

func repeatAdvice(request *quorleasev1.AcquireRequest) string {
	if request.GetTrack() {
		return "the same again with --lease-id " + request.GetLeaseId() + " tells, and charges once"
	}
	return "asking again may charge twice; --track makes it repeatable"
}

// acquireText writes the decision in the first line and the charges below it.
func acquireText(w io.Writer, r *quorleasev1.AcquireResponse) {
	if r.GetDecision() == quorleasev1.Decision_GRANTED {
		grantedText(w, r)
		return
	}
	denials := r.GetDenials()
	if len(denials) == 0 {
		fmt.Fprintln(w, "DENIED")
		return
	}
	first := denials[0]
	fmt.Fprintf(w, "DENIED reason=%s retry_after=%s", first.GetReason(), show.Wait(first))
	if frees := first.GetFreesIn(); frees != nil {
		fmt.Fprintf(w, " frees_in=%s", show.Duration(frees))
	}
	fmt.Fprintln(w)
	left := remainingBy(r.GetRemaining())
	rows := make([][]string, 0, len(denials))
	for _, d := range denials {
		rows = append(rows, []string{
			d.GetLimit(), d.GetKey(), d.GetDimension(), d.GetReason().String(), show.Wait(d),
			left[bucketName{d.GetLimit(), d.GetKey(), d.GetDimension()}],
		})
	}
	show.Table(w, "LIMIT KEY DIMENSION REASON RETRY_AFTER REMAINING", rows)
}

func grantedText(w io.Writer, r *quorleasev1.AcquireResponse) {
	lease := r.GetLease()
	fmt.Fprintf(w, "GRANTED lease=%s ttl=%s", lease.GetId(), show.Dash(show.Duration(lease.GetTtl())))
	if lease.GetTracked() {
		fmt.Fprintf(w, " tracked=yes state=%s", lease.GetState())
	}
	if r.GetRepeatedRequest() {
		fmt.Fprint(w, " repeated=yes")
	}
	fmt.Fprintln(w)
	left := remainingBy(r.GetRemaining())
	rows := make([][]string, 0, len(lease.GetCharges()))
	for _, c := range lease.GetCharges() {
		rows = append(rows, []string{
			c.GetLimit(), c.GetKey(), c.GetDimension(), show.Number(c.GetAmount()),
			left[bucketName{c.GetLimit(), c.GetKey(), c.GetDimension()}],
		})
	}
	show.Table(w, "LIMIT KEY DIMENSION AMOUNT REMAINING", rows)
}

// bucketName names one bucket.
type bucketName struct{ limit, key, dimension string }

func remainingBy(all []*quorleasev1.Remaining) map[bucketName]string {
	by := make(map[bucketName]string, len(all))
	for _, r := range all {
		by[bucketName{r.GetLimit(), r.GetKey(), r.GetDimension()}] = show.Number(r.GetTokens())
	}
	return by
}
