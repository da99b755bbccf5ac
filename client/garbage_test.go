package client_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/client"
)

// nonsense is a node that says who it is and answers every item as it likes.
type nonsense struct {
	quorleasev1.UnimplementedAdmissionServer
	quorleasev1.UnimplementedClusterServer
	asked  atomic.Int64
	answer func(*quorleasev1.RequestItem) *quorleasev1.ResponseItem
}

func (n *nonsense) Status(
	context.Context, *quorleasev1.ClusterStatusRequest,
) (*quorleasev1.ClusterStatusResponse, error) {
	return &quorleasev1.ClusterStatusResponse{
		Leader: "n1", Term: 1, Nodes: []*quorleasev1.NodeStatus{{Id: "n1", Grpc: "n1.test:7101"}},
	}, nil
}

func (n *nonsense) Session(
	stream grpc.BidiStreamingServer[quorleasev1.SessionRequest, quorleasev1.SessionResponse],
) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		answers := &quorleasev1.ResponseItems{}
		for _, item := range message.GetItems().GetItems() {
			n.asked.Add(1)
			if answer := n.answer(item); answer != nil {
				answer.Seq = item.GetSeq()
				answers.Items = append(answers.Items, answer)
			}
		}
		if err := stream.Send(&quorleasev1.SessionResponse{
			Kind: &quorleasev1.SessionResponse_Items{Items: answers},
		}); err != nil {
			return err
		}
	}
}

// serveNonsense runs f with a client of one such node, in virtual time.
func serveNonsense(
	t *testing.T, answer func(*quorleasev1.RequestItem) *quorleasev1.ResponseItem,
	f func(t *testing.T, n *nonsense, c *client.Client),
) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 18)
		n := &nonsense{answer: answer}
		server := grpc.NewServer()
		quorleasev1.RegisterAdmissionServer(server, n)
		quorleasev1.RegisterClusterServer(server, n)
		served := make(chan error)
		go func() { served <- server.Serve(listener) }()
		c, err := client.New(client.Config{
			Endpoints: []string{"n1.test:7101"}, Client: "billing",
			Dial: func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) },
		})
		if err != nil {
			t.Fatal(err)
		}
		f(t, n, c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func acquired(r *quorleasev1.AcquireResponse) *quorleasev1.ResponseItem {
	return &quorleasev1.ResponseItem{Answer: &quorleasev1.ResponseItem_Acquire{Acquire: r}}
}

// TestNonsense: what a node answers can't end the process, and is no decision
// where it is none.
func TestNonsense(t *testing.T) {
	for name, answer := range map[string]*quorleasev1.ResponseItem{
		"an_empty_answer":              {},
		"the_answer_to_something_else": {Answer: &quorleasev1.ResponseItem_Peek{Peek: &quorleasev1.PeekResponse{}}},
		"no_decision":                  acquired(&quorleasev1.AcquireResponse{}),
		"a_denial_without_a_reason":    acquired(&quorleasev1.AcquireResponse{Decision: quorleasev1.Decision_DENIED}),
		"a_grant_without_a_lease":      acquired(&quorleasev1.AcquireResponse{Decision: quorleasev1.Decision_GRANTED}),
	} {
		t.Run(name, func(t *testing.T) {
			say := func(item *quorleasev1.RequestItem) *quorleasev1.ResponseItem {
				return proto.CloneOf(answer)
			}
			serveNonsense(t, say, func(t *testing.T, n *nonsense, c *client.Client) {
				l, err := c.Limiter(client.LimiterConfig{Limit: "any"})
				if err != nil {
					t.Fatal(err)
				}
				for range 20 {
					if !l.Allow() {
						t.Error("a permit was refused by nonsense")
					}
					d, err := c.Acquire(t.Context(), client.Request{Charges: []client.Charge{charge("any", 1)}})
					if err != nil || !d.Granted || d.Source != client.Local {
						t.Fatalf("%+v, %v; want the client's own yes", d, err)
					}
				}
				if asked := n.asked.Load(); asked > 300 {
					t.Errorf("the node was asked %d times", asked)
				}
			})
		})
	}
}

// TestDeniedForNoTime: a denial that names no time to come back is no reason for a
// storm.
func TestDeniedForNoTime(t *testing.T) {
	say := func(*quorleasev1.RequestItem) *quorleasev1.ResponseItem {
		return acquired(&quorleasev1.AcquireResponse{
			Decision: quorleasev1.Decision_DENIED,
			Denials:  []*quorleasev1.Denial{{Reason: quorleasev1.Reason_PAUSED, RetryAfter: durationpb.New(0)}},
		})
	}
	serveNonsense(t, say, func(t *testing.T, n *nonsense, c *client.Client) {
		l, err := c.Limiter(client.LimiterConfig{Limit: "any"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Wait(ctx); err == nil {
			t.Error("waited for what is denied, and got it")
		}
		if asked := n.asked.Load(); asked > 40 {
			t.Errorf("the node was asked %d times in a second", asked)
		}
	})
}
