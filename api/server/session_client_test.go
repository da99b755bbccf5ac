package server_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
)

type sessionClient = grpc.BidiStreamingClient[quorleasev1.SessionRequest, quorleasev1.SessionResponse]

// open begins a session, with a hello unless it is nil.
func open(t *testing.T, ctx context.Context, address string, hello *quorleasev1.Hello) sessionClient {
	t.Helper()
	stream, err := quorleasev1.NewAdmissionClient(dial(t, address)).Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if hello != nil {
		err = stream.Send(&quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Hello{Hello: hello}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return stream
}

func hello() *quorleasev1.Hello { return &quorleasev1.Hello{Client: "c", SessionId: leaseID} }

func send(t *testing.T, stream sessionClient, items ...*quorleasev1.RequestItem) {
	t.Helper()
	err := stream.Send(&quorleasev1.SessionRequest{Kind: &quorleasev1.SessionRequest_Items{
		Items: &quorleasev1.RequestItems{Items: items},
	}})
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// receive collects answers until there are n. It returns them by seq, and the
// number of messages they came in.
func receive(t *testing.T, stream sessionClient, n int) (map[uint64]*quorleasev1.ResponseItem, int) {
	t.Helper()
	found, messages := map[uint64]*quorleasev1.ResponseItem{}, 0
	for len(found) < n {
		message, err := stream.Recv()
		if err != nil {
			t.Fatalf("after %d of %d answers: %v", len(found), n, err)
		}
		messages++
		for _, item := range message.GetItems().GetItems() {
			found[item.GetSeq()] = item
		}
	}
	return found, messages
}

func acquireItem(seq uint64, limit string) *quorleasev1.RequestItem {
	return &quorleasev1.RequestItem{Seq: seq, Operation: &quorleasev1.RequestItem_Acquire{
		Acquire: &quorleasev1.AcquireRequest{Charges: charge(limit, 1)},
	}}
}

func reasonOf(item *quorleasev1.ResponseItem) string {
	if item.GetError() == nil {
		return ""
	}
	return server.FromStatus(status.FromProto(item.GetError())).Cause.Reason
}

// eventually waits for a condition, without sleeping for luck.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatal("it never came true")
		}
	}
}
