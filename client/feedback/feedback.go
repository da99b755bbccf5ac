// Package feedback tells the authority what providers answered, so that all
// gateways know at once what one of them was told.
package feedback

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client/members"
)

// Kind is what a provider said; the numbers are those of the protocol.
type Kind int

// The kinds.
const (
	// Throttled: too many requests or tokens, 429.
	Throttled Kind = iota + 1
	// Acceleration: growing too fast.
	Acceleration
	// Overloaded: the provider has trouble of its own.
	Overloaded
	// SpendCap: money is used up. The key is blocked until a person clears it.
	SpendCap
	// Observed: headers only.
	Observed
)

// Answer is what a provider answered about one key, or about the work that has the
// attributes.
type Answer struct {
	Kind Kind
	// Limit and Key name what the work was charged to. Empty with Attributes.
	Limit, Key string
	// Attributes are those of the work: every limit that they fit and that stands for
	// a provider hears of it.
	Attributes map[string]string
	// Wait is what the provider asks to wait, up to 24 h. Zero: it did not say.
	Wait time.Duration
	// Remaining is what its headers say is left, by dimension.
	Remaining map[string]int64
	// Reason is its own word, at most 256 bytes: "insufficient_quota".
	Reason string
}

// Controlled is what the authority has made of what heard an answer.
type Controlled struct {
	// Gone: there is no such limit or key, and nothing was done.
	Gone bool
	// Paused is for how long it stays closed, at the longest.
	Paused time.Duration
	// Blocked is until a person clears it.
	Blocked bool
	// PacePPM is what of the rate is handed out after that, in parts per million.
	PacePPM int64
}

const (
	// attemptMax bounds one attempt, and tries how many there are: what is not known
	// by then others will have been told too.
	attemptMax = time.Second
	tries      = 3
)

// Tell reports answers, at most 64, for client, and returns what became of each. It
// asks another node where one does not answer: to report twice does no harm. The
// error is ctx's, or that of the last node.
func Tell(ctx context.Context, m *members.Members, client string, answers []Answer) ([]Controlled, error) {
	request := &quorleasev1.ReportRequest{Client: client}
	for _, a := range answers {
		f := &quorleasev1.Feedback{
			Kind: quorleasev1.Feedback_Kind(a.Kind), Limit: a.Limit, Key: a.Key, Attributes: a.Attributes,
			Remaining: a.Remaining, Reason: a.Reason,
		}
		if a.Wait != 0 {
			f.Wait = durationpb.New(a.Wait)
		}
		request.Feedback = append(request.Feedback, f)
	}
	var failed error
	for range tries {
		response, err := ask(ctx, m, request)
		if err == nil {
			return controlled(response), nil
		}
		failed = err
		if ctx.Err() != nil || !passing(err) {
			break
		}
	}
	return nil, failed
}

func ask(
	ctx context.Context, m *members.Members, request *quorleasev1.ReportRequest,
) (*quorleasev1.ReportResponse, error) {
	bounded, cancel := context.WithTimeout(ctx, attemptMax)
	defer cancel()
	s, node, err := m.Session(bounded)
	if err != nil {
		return nil, err
	}
	response, err := quorleasev1.NewAdmissionClient(s.Conn()).Report(bounded, request)
	if ctx.Err() == nil {
		m.Failed(node, err)
	}
	return response, err
}

// passing says whether another attempt may end otherwise. What is cancelled although
// its caller waits was on a connection that was given up meanwhile.
func passing(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Canceled:
		return true
	default:
		return errors.Is(err, context.DeadlineExceeded)
	}
}

func controlled(r *quorleasev1.ReportResponse) []Controlled {
	list := make([]Controlled, len(r.GetControlled()))
	for i, c := range r.GetControlled() {
		list[i] = Controlled{
			Gone: c.GetGone(), Paused: c.GetPaused().AsDuration(), Blocked: c.GetBlocked(), PacePPM: c.GetPacePpm(),
		}
	}
	return list
}
