package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server"
)

func (f *fakeNode) Add(ctx context.Context, r *quorleasev1.ClusterAddRequest) (*quorleasev1.ClusterAddResponse, error) {
	return answer(ctx, f, r, &quorleasev1.ClusterAddResponse{Changed: true})
}

func (f *fakeNode) Remove(
	ctx context.Context, r *quorleasev1.ClusterRemoveRequest,
) (*quorleasev1.ClusterRemoveResponse, error) {
	return answer(ctx, f, r, &quorleasev1.ClusterRemoveResponse{Changed: true})
}

func (f *fakeNode) Promote(
	ctx context.Context, r *quorleasev1.ClusterPromoteRequest,
) (*quorleasev1.ClusterPromoteResponse, error) {
	return answer(ctx, f, r, &quorleasev1.ClusterPromoteResponse{Changed: true})
}

func (f *fakeNode) Demote(
	ctx context.Context, r *quorleasev1.ClusterDemoteRequest,
) (*quorleasev1.ClusterDemoteResponse, error) {
	return answer(ctx, f, r, &quorleasev1.ClusterDemoteResponse{})
}

func (f *fakeNode) TransferLeadership(
	ctx context.Context, r *quorleasev1.ClusterTransferLeadershipRequest,
) (*quorleasev1.ClusterTransferLeadershipResponse, error) {
	return answer(ctx, f, r, &quorleasev1.ClusterTransferLeadershipResponse{Changed: true, Leader: "n2"})
}

// A learner that does not keep up yet is promoted when it does, where the operator
// waits, and else what is missing is said.
func TestPromoteWaits(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	node := startFake(t, fullFake())
	notReady, err := status.New(codes.FailedPrecondition, "not ready: n4 has kept up for 9.9 s, 10 s are needed").
		WithDetails(&errdetails.ErrorInfo{Reason: "NODE_NOT_READY", Domain: server.Domain})
	if err != nil {
		t.Fatal(err)
	}
	node.mu.Lock()
	busy, err := status.New(codes.Aborted, "another change of the members is under way").
		WithDetails(&errdetails.ErrorInfo{Reason: "CHANGE_UNDER_WAY", Domain: server.Domain})
	if err != nil {
		t.Fatal(err)
	}
	node.fail = func(context.Context, proto.Message) error {
		switch asked.Add(1) {
		case 1, 2:
			return notReady.Err()
		case 3:
			return busy.Err()
		}
		return nil
	}
	node.mu.Unlock()
	got := command(t, "--endpoints", node.addr, "cluster", "promote", "n4")
	if want := "quorlease: not ready: n4 has kept up for 9.9 s, 10 s are needed\n"; got.code != 1 || got.stderr != want {
		t.Errorf("without --wait: %d, %q, want %q", got.code, got.stderr, want)
	}
	got = command(t, "--endpoints", node.addr, "cluster", "promote", "n4", "--wait", time.Minute.String())
	if got.code != 0 || got.stdout != "n4 votes\n" || asked.Load() != 4 {
		t.Errorf("with --wait: %+v after %d questions", got, asked.Load())
	}
	want := "waiting: not ready: n4 has kept up for 9.9 s, 10 s are needed\n" +
		"waiting: another change of the members is under way; ask again when it is done\n"
	if got.stderr != want {
		t.Errorf("with --wait: %q, want %q", got.stderr, want)
	}
	if got := command(t, "cluster", "promote", "n4", "--wait", "-1s"); got.code != 2 {
		t.Errorf("a negative wait: %+v", got)
	}
}
