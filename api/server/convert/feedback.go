package convert

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quorlease/quorlease/api/limitsfile"
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/match"
)

const (
	// feedbackMax bounds the answers of providers in one report, and the buckets
	// that hear of them.
	feedbackMax  = 64
	remainingMax = 16
	// pauseMax is the longest that a provider can ask to wait.
	pauseMax = 24 * time.Hour
)

// feedback checks what a report says of providers.
func (c *checker) feedback(list []*quorleasev1.Feedback) {
	if n := len(list); n > feedbackMax {
		c.fail("feedback", "%d entries, more than %d", n, feedbackMax)
		return
	}
	for i, f := range list {
		c.provider(func(name string) string { return at("feedback", i, name) }, f)
	}
}

// provider checks one answer of a provider.
func (c *checker) provider(in func(name string) string, f *quorleasev1.Feedback) {
	if kind := f.GetKind(); kind < quorleasev1.Feedback_THROTTLED || kind > quorleasev1.Feedback_OBSERVED {
		c.fail(in("kind"), "%d is none", kind)
	}
	switch {
	case len(f.GetAttributes()) == 0:
		c.problem(in("limit"), limitsfile.NameProblem(f.GetLimit()))
		c.problem(in("key"), limitsfile.KeyProblem(f.GetKey()))
	case f.GetLimit() != "" || f.GetKey() != "":
		c.fail(in("limit"), "must be absent beside attributes")
	default:
		own := &checker{}
		own.attributes(&quorleasev1.AcquireRequest{Attributes: f.GetAttributes()})
		for _, field := range own.fields {
			c.fail(in(field.Field), "%s", field.Problem)
		}
	}
	if f.GetWait() != nil {
		c.duration(in("wait"), f.GetWait(), 0, pauseMax)
	}
	if n := len(f.GetRemaining()); n > remainingMax {
		c.fail(in("remaining"), "%d, more than %d", n, remainingMax)
		return
	} else if n == 0 && f.GetKind() == quorleasev1.Feedback_OBSERVED {
		c.fail(in("remaining"), "missing: 1 to %d", remainingMax)
	}
	for _, dimension := range sortedNames(f.GetRemaining()) {
		if problem := limitsfile.DimensionProblem(dimension); problem != "" {
			c.fail(in("remaining"), "%s", problem)
		} else if n := f.GetRemaining()[dimension]; n < 0 || n > bucket.MaxTokens {
			c.fail(in("remaining."+dimension), "%d is out of range 0..%d", n, int64(bucket.MaxTokens))
		}
	}
	c.problem(in("reason"), limitsfile.ClientProblem(f.GetReason()))
}

func sortedNames(amounts map[string]int64) []string {
	names := make([]string, 0, len(amounts))
	for name := range amounts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Heard is the work that an answer of a provider was about, nil where it names its
// bucket. client is who the work was for.
func Heard(f *quorleasev1.Feedback, client string) *match.Request {
	if len(f.GetAttributes()) == 0 {
		return nil
	}
	return &match.Request{Client: client, Attributes: f.GetAttributes()}
}

// Signal is what a provider said of one bucket. It has been checked by Report.
func Signal(f *quorleasev1.Feedback, target match.Target) *logv1.Signal {
	s := &logv1.Signal{
		// The numbers of both protocols are the same.
		Kind:  logv1.Signal_Kind(f.GetKind()),
		Limit: target.Limit, Key: target.Key, Wait: int64(f.GetWait().AsDuration()), Reason: f.GetReason(),
	}
	for _, dimension := range sortedNames(f.GetRemaining()) {
		s.Observed = append(s.Observed, &logv1.Observed{
			Dimension: dimension, Remaining: f.GetRemaining()[dimension],
		})
	}
	return s
}

// Controlled is what has been made of the buckets that heard one answer of a provider:
// the longest pause, and the slowest pace. Gone: there is none.
func Controlled(signals []*logv1.Controlled) *quorleasev1.Controlled {
	answer := &quorleasev1.Controlled{Gone: true}
	paused := time.Duration(0)
	for _, s := range signals {
		if s.GetGone() {
			continue
		}
		if answer.GetGone() || s.GetPace() < answer.GetPacePpm() {
			answer.PacePpm = s.GetPace()
		}
		answer.Gone = false
		answer.Blocked = answer.GetBlocked() || s.GetBlocked()
		paused = max(paused, time.Duration(s.GetPaused()))
	}
	if paused > 0 {
		answer.Paused = durationpb.New(paused)
	}
	return answer
}
