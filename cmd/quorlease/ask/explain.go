package ask

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorlease/quorlease/api/server"
)

// fate is what became of a question that got an error.
type fate int

const (
	// decided: the node refused the question itself. Another node would too.
	decided fate = iota
	// notAsked: there was no connection.
	notAsked
	// electing: nothing happened, and it is worth asking again soon.
	electing
	// withoutQuorum: nothing happened, and this node can't help.
	withoutQuorum
	// unknown: it may have happened.
	unknown
)

// fateOf reads an error of a call by the error table.
func fateOf(err error) fate {
	var u *unreachable
	if errors.As(err, &u) {
		return notAsked
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return unknown
	}
	cause := causeOf(err)
	switch {
	case cause.Reason == "NO_LEADER" || cause.Reason == "OVERLOADED":
		return electing
	case cause.Reason == "NO_QUORUM" || cause.Reason == "SHUTTING_DOWN":
		return withoutQuorum
	case cause.MayHaveHappened && cause.Reason != "INTERNAL":
		return unknown
	default:
		// A bug is the same at the next node, and to be seen rather than hidden.
		return decided
	}
}

// causeOf is the row of the error table that a call's error came from.
func causeOf(err error) server.Cause {
	s, _ := status.FromError(err)
	if s.Code() == codes.OK {
		return server.Cause{}
	}
	return server.FromStatus(s).Cause
}

// Reason is that of a call's error in the error table, empty where it has none.
func Reason(err error) string { return causeOf(err).Reason }

// advice says what to do about a reason.
var advice = map[string]string{
	"LIMIT_NOT_FOUND":  "`quorlease limits get` lists those that exist",
	"LEASE_NOT_FOUND":  "only tracked leases (`acquire --track`) are kept, and only for a time after their end",
	"LEASE_CONFLICT":   "the lease stays as it is",
	"REVISION_CHANGED": "look with `quorlease limits get` and apply again with the revision it shows",
	"DISK_LOW":         "free space on the node's disk",
	"COMPACTED":        "leave --from out to see what is kept",
	"OVERLOADED":       "nothing was decided; ask again later",
	"NODE_NOT_FOUND":   "`quorlease cluster status` lists the members",
	"CHANGE_UNDER_WAY": "ask again when it is done",
}

// subject says of what a message speaks that begins with a bare value.
var subject = map[string]string{
	"LEASE_NOT_FOUND":  "lease ",
	"LEASE_CONFLICT":   "lease ",
	"REVISION_CHANGED": "expected revision ",
}

// lacksKey says whether the limit has keys and none was given.
func lacksKey(e *server.Error) bool {
	return len(e.Fields) == 1 && strings.HasSuffix(e.Fields[0].Name, "key") &&
		strings.HasPrefix(e.Fields[0].Problem, "none:")
}

// Explain turns the error of a question into the one line that is printed. The
// exit code stays what it was.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	e := server.FromStatus(s)
	text := subject[e.Cause.Reason] + e.Message
	if e.Message == "" {
		text = e.Cause.Name
	}
	if e.Correlation != "" {
		text += "; the node's log says more under " + e.Correlation
	}
	if e.Cause.MayHaveHappened {
		text += "; it may have happened"
	}
	if hint := advice[e.Cause.Reason]; hint != "" {
		text += "; " + hint
	}
	if lacksKey(e) {
		text += "; write LIMIT/KEY"
	}
	if s.Code() == codes.Unimplemented {
		text += "; the node's program is another version than this one"
	}
	return errors.New(text)
}

// Decided says whether an error of a call is a node's own answer to it, rather
// than a failure on the way.
func Decided(err error) bool { return fateOf(err) == decided }

// attempts collects why no endpoint gave an answer.
type attempts struct {
	timeout time.Duration
	kind    Kind
	list    []attempt
}

type attempt struct {
	addr string
	fate fate
	text string
}

// add keeps the last failure of each endpoint; what may have happened stays
// what may have happened.
func (a *attempts) add(addr string, f fate, err error) {
	var text string
	var u *unreachable
	switch {
	case errors.As(err, &u):
		text = u.err.Error()
	case errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded:
		text = "no answer in time"
	default:
		s, _ := status.FromError(err)
		text = s.Message()
	}
	for i := range a.list {
		if a.list[i].addr == addr {
			if a.list[i].fate != unknown || f == unknown {
				a.list[i] = attempt{addr, f, text}
			}
			return
		}
	}
	a.list = append(a.list, attempt{addr, f, text})
}

// OutcomeUnknownError says that a change may have happened.
type OutcomeUnknownError struct{ text string }

func (o *OutcomeUnknownError) Error() string { return o.text }

// failed is the error when there was no answer. The gravest cause speaks.
func (a *attempts) failed() error {
	has := map[fate]bool{}
	for _, one := range a.list {
		has[one.fate] = true
	}
	switch {
	case has[unknown] && a.kind != Read:
		return &OutcomeUnknownError{"no answer, and it may have happened: " + a.causes()}
	case has[electing]:
		return fmt.Errorf("no answer within %s, nothing was decided: %s; "+
			"an election takes about a second: ask again", a.timeout, a.causes())
	case has[withoutQuorum]:
		return fmt.Errorf("no quorum, nothing was decided: %s; "+
			"see `quorlease cluster status` for the nodes that are away", a.causes())
	default:
		return fmt.Errorf("no node answered: %s; "+
			"start some with `quorlease dev`, or name others with --endpoints", a.causes())
	}
}

// causes names the endpoints by what went wrong, those with the same cause
// together.
func (a *attempts) causes() string {
	var order []string
	by := map[string][]string{}
	for _, one := range a.list {
		if len(by[one.text]) == 0 {
			order = append(order, one.text)
		}
		by[one.text] = append(by[one.text], one.addr)
	}
	groups := make([]string, 0, len(order))
	for _, text := range order {
		groups = append(groups, strings.Join(by[text], ", ")+": "+text)
	}
	return strings.Join(groups, "; ")
}
