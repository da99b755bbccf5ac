package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/cmd/quorlease/argument"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

const acquireLong = `Ask for every charge or none. The answer is GRANTED, or DENIED with the reason
and how long to wait; a denial changes nothing and has exit code 3.

LIMIT[/KEY] is followed by what is asked of it; more limits may follow, each
with amounts of its own. Without DIM=AMOUNT one request is charged.

With --attr the work is described instead: every limit whose match fits is
charged, and the answer lists them. DIM=AMOUNT before any limit says what the
work takes; one request and one slot unless it says so.

With --wait the authority holds what it can't grant now in its queue for so long.

A lease that is tracked can be settled, renewed and released afterwards, and
asking again with the same --lease-id gives the same answer instead of a second
charge.`

const acquireExample = `  quorlease acquire demo
  quorlease acquire llm/team-a requests=1 input_tokens=1200 output_tokens=400
  quorlease acquire llm/team-a input_tokens=1200 demo requests=1 --track
  quorlease acquire --attr model=gpt-4o --attr tenant=a input_tokens=1200 --wait 2s
  quorlease acquire demo --client batch-7 --attempt 2
  quorlease acquire demo --track --lease-id 000102030405060708090a0b0c0d0e0f`

func newAcquire(a *app) *cobra.Command {
	request := &quorleasev1.AcquireRequest{}
	var attributes []string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:     "acquire [DIM=AMOUNT …] [LIMIT[/KEY] [DIM=AMOUNT …] …]",
		Short:   "Ask for a lease: GRANTED, or DENIED with the reason",
		Long:    acquireLong,
		Example: acquireExample,
		RunE: func(c *cobra.Command, args []string) error {
			if err := argument.Work(request, attributes, args); err != nil {
				return err
			}
			if wait < 0 || wait > convert.WaitMax {
				return exit.Usagef("--wait %v is outside 0s to %v", wait, convert.WaitMax)
			}
			if wait > 0 {
				request.MaxWait, a.wait = durationpb.New(wait), wait
			}
			return a.acquire(c.Context(), request)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.Client, "client", "", "the `name` of who the work is for; its retry budget counts")
	flags.StringVar(&request.Class, "class", "", "priority `class`; without it each limit's first")
	flags.StringArrayVar(&attributes, "attr", nil, "what the work is, `NAME=VALUE`; again for each attribute")
	flags.DurationVar(&wait, "wait", 0, "how long to wait where it can't be granted now")
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
	if err := a.print(answer, func(w io.Writer) { show.Acquire(w, answer) }); err != nil {
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
