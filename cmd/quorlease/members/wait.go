package members

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

const (
	// askEvery is the pause between two questions whether a learner keeps up.
	askEvery = 500 * time.Millisecond
	// sayEvery is how often it is said what is waited for, where that is the same still.
	sayEvery = 5 * time.Second
)

// promote asks until the learner votes, or what keeps it from it won't pass, or wait is
// over.
func promote(ctx context.Context, app App, id string, wait time.Duration) error {
	call := ask.CallOf(quorleasev1.NewClusterClient,
		quorleasev1.ClusterClient.Promote, &quorleasev1.ClusterPromoteRequest{Id: id})
	said, about := time.Time{}, ""
	for deadline := time.Now().Add(wait); ; {
		answer, err := once(ctx, app, ask.Repeatable, call)
		if err == nil {
			return app.Print(answer, func(w io.Writer) {
				fmt.Fprintln(w, told(answer.GetChanged(), id+" votes", id+" had a vote before"))
			})
		}
		left := time.Until(deadline)
		if !passes(err) || left <= 0 || ctx.Err() != nil {
			return ask.Explain(err)
		}
		if reason := ask.Reason(err); reason != about || time.Since(said) >= sayEvery {
			said, about = time.Now(), reason
			fmt.Fprintf(app.Stderr, "waiting: %v\n", ask.Explain(err))
		}
		timer := time.NewTimer(min(askEvery, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ask.Explain(err)
		}
	}
}

// passes reports whether an error may be another one soon: the learner does not keep up
// yet, somebody else changes the members, or no node has decided, as in an election.
func passes(err error) bool {
	var usage *exit.Error
	if errors.As(err, &usage) {
		return false
	}
	if _, answered := status.FromError(err); !answered {
		return true
	}
	reason := ask.Reason(err)
	return reason == "NODE_NOT_READY" || reason == "CHANGE_UNDER_WAY"
}
