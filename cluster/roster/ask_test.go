package roster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/identity"
	"github.com/quorlease/quorlease/cluster/membership"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// leader answers as it was told to, the last answer again and again.
type leader struct {
	peerv1.PeerClient
	answers []*peerv1.ChangeResponse
	asked   int
}

// lost stands for an answer that got lost.
var lost *peerv1.ChangeResponse

func (l *leader) Change(
	context.Context, *peerv1.ChangeRequest, ...grpc.CallOption,
) (*peerv1.ChangeResponse, error) {
	answer := l.answers[min(l.asked, len(l.answers)-1)]
	l.asked++
	if answer == lost {
		return nil, errors.New("connection reset")
	}
	return answer, nil
}

func failure(err error) *peerv1.ChangeResponse {
	return &peerv1.ChangeResponse{Failure: outcome.FailureOf(err)}
}

// What comes of a change is what the leader says of it, whoever that is by then; what
// is not known is asked for again (R10, R33).
func TestR33ChangesAreAskedForAgain(t *testing.T) {
	t.Parallel()
	yes, moved := &peerv1.ChangeResponse{Changed: true}, &peerv1.ChangeResponse{Changed: true, Moved: true}
	unknown := &peerv1.ChangeResponse{Cause: peerv1.ChangeResponse_CAUSE_UNKNOWN, Reason: "n2"}
	busy := &peerv1.ChangeResponse{Cause: peerv1.ChangeResponse_CAUSE_BUSY}
	refused := &peerv1.ChangeResponse{Cause: peerv1.ChangeResponse_CAUSE_REFUSED, Reason: "why"}
	for _, c := range []struct {
		name    string
		verb    membership.Verb
		answers []*peerv1.ChangeResponse
		want    bool
		err     error
		asked   int
	}{
		{"made", membership.Add, []*peerv1.ChangeResponse{yes}, true, nil, 1},
		{"so_before", membership.Add, []*peerv1.ChangeResponse{{}}, false, nil, 1},
		{"handed_over_first", membership.Remove, []*peerv1.ChangeResponse{moved, yes}, true, nil, 2},
		{
			"handed_over_and_elected", membership.Remove,
			[]*peerv1.ChangeResponse{moved, failure(outcome.ErrNotLeader), failure(outcome.ErrNoLeader), yes},
			true, nil, 4,
		},
		{"refused", membership.Remove, []*peerv1.ChangeResponse{refused}, false, membership.ErrRefused, 1},
		{"unknown", membership.Remove, []*peerv1.ChangeResponse{unknown}, false, membership.ErrUnknown, 1},
		{"removed_and_the_answer_lost", membership.Remove, []*peerv1.ChangeResponse{lost, unknown}, true, nil, 2},
		{"busy", membership.Remove, []*peerv1.ChangeResponse{busy}, false, membership.ErrBusy, 1},
		{"busy_with_what_got_lost", membership.Promote, []*peerv1.ChangeResponse{lost, busy, {}}, false, nil, 3},
		{"promoted_and_the_answer_lost", membership.Promote, []*peerv1.ChangeResponse{lost, {}}, false, nil, 2},
		{"never_answered", membership.Remove, []*peerv1.ChangeResponse{lost}, false, outcome.ErrUnknown, 0},
		{
			"nobody_leads", membership.Remove,
			[]*peerv1.ChangeResponse{failure(outcome.ErrNoLeader)},
			false,
			outcome.ErrNoLeader, 0,
		},
		{
			"no_quorum", membership.Remove,
			[]*peerv1.ChangeResponse{failure(outcome.ErrNoQuorum)},
			false,
			outcome.ErrNoQuorum, 1,
		},
		{
			"a_newer_cause", membership.Remove, []*peerv1.ChangeResponse{{Cause: 99}}, false, outcome.ErrUnknown, 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				l := &leader{answers: c.answers}
				got, err := changer(l).Change(ctx, c.verb, "n2", "")
				if got.Changed != c.want || !errors.Is(err, c.err) || c.err == nil && err != nil {
					t.Errorf("got %+v, %v, want changed %t, %v", got, err, c.want, c.err)
				}
				if c.asked > 0 && l.asked != c.asked {
					t.Errorf("asked %d times, want %d", l.asked, c.asked)
				}
				if err != nil && outcome.MayHaveHappened(err) != errors.Is(err, outcome.ErrUnknown) {
					t.Errorf("%v says both", err)
				}
			})
		})
	}
}

func changer(l *leader) *Changer {
	r := New(func() []identity.Member { return nil })
	r.Store(1, raft.Configuration{Servers: []raft.Server{{ID: "n2.00000002", Address: "n2:7201"}}})
	return NewChanger(ChangerConfig{
		Roster: r, Self: "n1.00000001", Leads: func() bool { return false },
		Leader:     func() (string, string) { return "n3.00000003", "n3:7201" },
		Leaderless: func() error { return outcome.ErrNoLeader },
		Client:     func(string) (peerv1.PeerClient, error) { return l, nil },
	})
}

// Who was never a member, as far as this node knows, was not taken out by an attempt whose
// answer got lost.
func TestR33UnknownBeforeIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &leader{answers: []*peerv1.ChangeResponse{lost, {Cause: peerv1.ChangeResponse_CAUSE_UNKNOWN}}}
		if got, err := changer(l).Change(t.Context(), membership.Remove, "n9", ""); !errors.Is(err, membership.ErrUnknown) {
			t.Errorf("got %+v, %v, want that there is none", got, err)
		}
	})
}

// hung never answers.
type hung struct{ peerv1.PeerClient }

func (hung) Change(ctx context.Context, _ *peerv1.ChangeRequest, _ ...grpc.CallOption) (*peerv1.ChangeResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A leader that hangs is waited for until another leads, which is asked then. Where any
// voter will do and one leads, it has happened.
func TestR10LeaderHangs(t *testing.T) {
	t.Parallel()
	for name, verb := range map[string]membership.Verb{"a_change": membership.Promote, "leadership": membership.Transfer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				l, began := &leader{answers: []*peerv1.ChangeResponse{{}}}, time.Now()
				c := changer(l)
				c.config.Leader = func() (string, string) {
					if time.Since(began) < 2*time.Second {
						return "n3.00000003", "n3:7201"
					}
					return "n2.00000002", "n2:7201"
				}
				c.config.Client = func(address string) (peerv1.PeerClient, error) {
					if address == "n3:7201" {
						return hung{}, nil
					}
					return l, nil
				}
				who := map[membership.Verb]string{membership.Promote: "n2"}[verb]
				got, err := c.Change(ctx, verb, who, "")
				if err != nil || got.Changed != (verb == membership.Transfer) || time.Since(began) > 5*time.Second {
					t.Errorf("got %+v, %v after %v", got, err, time.Since(began))
				}
			})
		})
	}
}

// Why nothing is changed survives the way through another node, word for word.
func TestCausesKeepTheirWords(t *testing.T) {
	t.Parallel()
	for _, row := range causes {
		for _, err := range []error{row.err, fmt.Errorf("%w: n4 is 300 entries behind", row.err)} {
			back := errorOf(&peerv1.ChangeResponse{Cause: row.cause, Reason: reasonOf(err, row.err)})
			if !errors.Is(back, row.err) || back.Error() != err.Error() {
				t.Errorf("%v came back as %v", err, back)
			}
		}
	}
}
