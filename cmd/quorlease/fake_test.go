package main

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// fakeNode answers every call with what a test has put there, and remembers the
// requests.
type fakeNode struct {
	quorleasev1.UnimplementedAdmissionServer
	quorleasev1.UnimplementedLimitsServer
	quorleasev1.UnimplementedClusterServer
	quorleasev1.UnimplementedClientsServer
	quorleasev1.UnimplementedEventsServer

	addr string

	mu       sync.Mutex
	requests []proto.Message
	// fail, where it is set, is asked first.
	fail func(ctx context.Context, request proto.Message) error

	acquire  *quorleasev1.AcquireResponse
	settle   *quorleasev1.SettleResponse
	release  *quorleasev1.ReleaseResponse
	renew    *quorleasev1.RenewResponse
	apply    *quorleasev1.LimitsApplyResponse
	list     *quorleasev1.LimitsListResponse
	remove   *quorleasev1.LimitsDeleteResponse
	inspect  *quorleasev1.LimitsInspectResponse
	adjust   *quorleasev1.LimitsAdjustResponse
	history  *quorleasev1.LimitsHistoryResponse
	keys     *quorleasev1.LimitsKeysResponse
	status   *quorleasev1.ClusterStatusResponse
	clients  *quorleasev1.ClientsListResponse
	usage    []*quorleasev1.UsageRow
	events   []*quorleasev1.Event
	watching chan struct{}
}

// startFake serves a fake node until the test ends.
func startFake(t *testing.T, f *fakeNode) *fakeNode {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = listener.Addr().String()
	server := grpc.NewServer()
	quorleasev1.RegisterAdmissionServer(server, f)
	quorleasev1.RegisterLimitsServer(server, limitsOf{f})
	quorleasev1.RegisterClusterServer(server, f)
	quorleasev1.RegisterClientsServer(server, clientsOf{f})
	quorleasev1.RegisterEventsServer(server, f)
	quorleasev1.RegisterUsageBookServer(server, usageOf{fakeNode: f})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return f
}

// answer remembers a request and gives what was prepared for it.
func answer[A any](ctx context.Context, f *fakeNode, request proto.Message, prepared *A) (*A, error) {
	f.mu.Lock()
	f.requests = append(f.requests, proto.Clone(request))
	fail := f.fail
	f.mu.Unlock()
	if fail != nil {
		if err := fail(ctx, request); err != nil {
			return nil, err
		}
	}
	return prepared, nil
}

func (f *fakeNode) asked() []proto.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests
}

func (f *fakeNode) Acquire(
	ctx context.Context, r *quorleasev1.AcquireRequest,
) (*quorleasev1.AcquireResponse, error) {
	return answer(ctx, f, r, f.acquire)
}

func (f *fakeNode) Settle(ctx context.Context, r *quorleasev1.SettleRequest) (*quorleasev1.SettleResponse, error) {
	return answer(ctx, f, r, f.settle)
}

func (f *fakeNode) Release(
	ctx context.Context, r *quorleasev1.ReleaseRequest,
) (*quorleasev1.ReleaseResponse, error) {
	return answer(ctx, f, r, f.release)
}

func (f *fakeNode) Renew(ctx context.Context, r *quorleasev1.RenewRequest) (*quorleasev1.RenewResponse, error) {
	return answer(ctx, f, r, f.renew)
}

func (f *fakeNode) Status(
	ctx context.Context, r *quorleasev1.ClusterStatusRequest,
) (*quorleasev1.ClusterStatusResponse, error) {
	return answer(ctx, f, r, f.status)
}

func (f *fakeNode) Watch(
	r *quorleasev1.EventsWatchRequest, stream grpc.ServerStreamingServer[quorleasev1.EventsWatchResponse],
) error {
	if _, err := answer(stream.Context(), f, r, &struct{}{}); err != nil {
		return err
	}
	for _, e := range f.events {
		if err := stream.Send(&quorleasev1.EventsWatchResponse{Event: e}); err != nil {
			return err
		}
	}
	if r.GetFollow() {
		close(f.watching)
		<-stream.Context().Done()
	}
	return nil
}

// limitsOf and clientsOf keep the two methods named List apart.
type limitsOf struct{ *fakeNode }

func (f limitsOf) Apply(
	ctx context.Context, r *quorleasev1.LimitsApplyRequest,
) (*quorleasev1.LimitsApplyResponse, error) {
	return answer(ctx, f.fakeNode, r, f.apply)
}

func (f limitsOf) List(
	ctx context.Context, r *quorleasev1.LimitsListRequest,
) (*quorleasev1.LimitsListResponse, error) {
	return answer(ctx, f.fakeNode, r, f.list)
}

func (f limitsOf) Delete(
	ctx context.Context, r *quorleasev1.LimitsDeleteRequest,
) (*quorleasev1.LimitsDeleteResponse, error) {
	return answer(ctx, f.fakeNode, r, f.remove)
}

func (f limitsOf) Inspect(
	ctx context.Context, r *quorleasev1.LimitsInspectRequest,
) (*quorleasev1.LimitsInspectResponse, error) {
	return answer(ctx, f.fakeNode, r, f.inspect)
}

func (f limitsOf) Adjust(
	ctx context.Context, r *quorleasev1.LimitsAdjustRequest,
) (*quorleasev1.LimitsAdjustResponse, error) {
	return answer(ctx, f.fakeNode, r, f.adjust)
}

func (f limitsOf) History(
	ctx context.Context, r *quorleasev1.LimitsHistoryRequest,
) (*quorleasev1.LimitsHistoryResponse, error) {
	return answer(ctx, f.fakeNode, r, f.history)
}

func (f limitsOf) Keys(
	ctx context.Context, r *quorleasev1.LimitsKeysRequest,
) (*quorleasev1.LimitsKeysResponse, error) {
	return answer(ctx, f.fakeNode, r, f.keys)
}

type clientsOf struct{ *fakeNode }

func (f clientsOf) List(
	ctx context.Context, r *quorleasev1.ClientsListRequest,
) (*quorleasev1.ClientsListResponse, error) {
	return answer(ctx, f.fakeNode, r, f.clients)
}

// refusal is an error as a node gives it.
func refusal(t *testing.T, code codes.Code, reason, message string) error {
	t.Helper()
	s, err := status.New(code, message).WithDetails(&errdetails.ErrorInfo{Domain: "quorlease", Reason: reason})
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

const someLease = "000102030405060708090a0b0c0d0e0f"

// fullFake has an answer to everything, with something in every field.
func fullFake() *fakeNode {
	at := timestamppb.New(time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC))
	settlements := []*quorleasev1.Settlement{{
		Limit: "llm", Key: "team-a", Dimension: "input_tokens",
		Amount: 1200, Used: 1500, Refunded: 0, Excess: 300, WrittenOff: 20,
	}}
	limit := &quorleasev1.Limit{
		Name: "llm", Per: []string{"key"}, TargetBp: proto.Int64(9000), Lease: durationpb.New(2 * time.Minute),
		MaxKeys: proto.Int64(100_000),
		Dimensions: []*quorleasev1.Dimension{{
			Name: "requests", Rate: &quorleasev1.Rate{Amount: 60, Interval: durationpb.New(time.Minute)},
			Burst: proto.Int64(27), MaxDebt: proto.Int64(54), MaxOpen: proto.Int64(54),
		}},
		Classes: []*quorleasev1.Class{{Name: "live", ShareBp: 6000, BurstBp: proto.Int64(5000)}, {Name: "batch"}},

		OnQuorumLoss: quorleasev1.FallbackMode_SHARE_ON_LOSS, FallbackShareBp: proto.Int64(2500),
	}
	before := proto.CloneOf(limit)
	before.TargetBp = proto.Int64(7500)
	before.OnQuorumLoss, before.FallbackShareBp = quorleasev1.FallbackMode_OPEN_ON_LOSS, nil
	budget := &quorleasev1.RetryBudget{
		Name: "default", Client: "*", MaxRetries: proto.Uint32(3), MaxFractionBp: proto.Int64(2000),
		Window: durationpb.New(5 * time.Minute), MinRequests: proto.Int64(50), RetryAfter: durationpb.New(time.Minute),
	}
	changes := []*quorleasev1.LimitChange{
		{Name: "llm", LimitBefore: before, LimitAfter: limit},
		{Name: "default", RetryBudgetAfter: budget},
	}
	return &fakeNode{
		acquire: grantedAnswer(),
		settle: &quorleasev1.SettleResponse{
			State: quorleasev1.LeaseState_SETTLED, RepeatedRequest: true, Settlements: settlements,
		},
		release: &quorleasev1.ReleaseResponse{State: quorleasev1.LeaseState_RELEASED, Settlements: settlements},
		renew: &quorleasev1.RenewResponse{
			State: quorleasev1.LeaseState_OPEN, Ttl: durationpb.New(30 * time.Second), Settlements: settlements,
		},
		apply: &quorleasev1.LimitsApplyResponse{Revision: 8, Changes: changes},
		list: &quorleasev1.LimitsListResponse{
			Revision: 8, Limits: []*quorleasev1.Limit{limit}, RetryBudgets: []*quorleasev1.RetryBudget{budget},
		},
		remove:  &quorleasev1.LimitsDeleteResponse{Revision: 9},
		inspect: inspectAnswer(limit),
		adjust: &quorleasev1.LimitsAdjustResponse{
			Before: &quorleasev1.Remaining{Limit: "llm", Key: "team-a", Dimension: "requests", Tokens: -3},
			After:  &quorleasev1.Remaining{Limit: "llm", Key: "team-a", Dimension: "requests", Tokens: 27},
		},
		history: &quorleasev1.LimitsHistoryResponse{Revisions: []*quorleasev1.Revision{
			{Revision: 8, Time: at, Author: "operator", Changes: changes},
		}},
		keys: &quorleasev1.LimitsKeysResponse{Total: 40, Matching: 12, Keys: []*quorleasev1.KeyState{
			{
				Key: "team-a", Dimension: "input_tokens", Debt: 30, Burst: 100, LeftPpm: -300_000, OpenLeases: 2,
				Control: &quorleasev1.ControlState{Paused: durationpb.New(9 * time.Second), PacePpm: 50_000, Reason: "429"},
			},
			{Key: "team-b", Dimension: "requests", Level: 12, Burst: 27, LeftPpm: 444_444},
		}},
		status: statusAnswer(),
		clients: &quorleasev1.ClientsListResponse{Total: 7, Clients: []*quorleasev1.ClientStatus{{
			Client: "batch-7", Requests: 200, Retries: 41, FractionPpm: 205_000, RetryBudget: "default", OverBudget: true,
			Throttled: 8412, Denied: 40, Early: 38, HonoursWaits: proto.Bool(false), Error: "429",
			FreesIn: durationpb.New(96 * time.Second), Mode: quorleasev1.Mode_ENFORCE,
			RetriesAllowed: 41, OverFor: durationpb.New(12 * time.Second),
		}, {
			Client: "chat", Requests: 12, RetriesLeft: 39, RetriesAllowed: 39, RetryBudget: "default",
			Mode: quorleasev1.Mode_ENFORCE,
		}}},
		events: []*quorleasev1.Event{
			{Index: 42, Time: at, Kind: "LimitChanged", Severity: quorleasev1.Severity_INFO, Limit: "llm", Text: "revision 8"},
			{Time: at, Kind: "QuorumLost", Severity: quorleasev1.Severity_CRITICAL, Value: "1 of 3", Text: "two\nlines"},
		},
		watching: make(chan struct{}),
	}
}

func grantedAnswer() *quorleasev1.AcquireResponse {
	return &quorleasev1.AcquireResponse{
		Decision: quorleasev1.Decision_GRANTED,
		Lease: &quorleasev1.Lease{
			Id: someLease, Ttl: durationpb.New(5 * time.Second), State: quorleasev1.LeaseState_OPEN, Tracked: true,
			Charges: []*quorleasev1.Charge{
				{Limit: "llm", Key: "team-a", Dimension: "requests", Amount: 1},
				{Limit: "demo", Dimension: "requests", Amount: 5},
			},
		},
		Source: quorleasev1.Source_CONSENSUS, RepeatedRequest: true,
		Remaining: []*quorleasev1.Remaining{
			{Limit: "llm", Key: "team-a", Dimension: "requests", Tokens: 26}, {Limit: "demo", Dimension: "requests"},
		},
		Fallbacks: &quorleasev1.Fallbacks{Revision: 8},
	}
}

// kindsFake answers with what slots, quotas, queues and providers add.
func kindsFake() *fakeNode {
	fake := fullFake()
	slots := &quorleasev1.Limit{
		Name: "tenant-inflight", Per: []string{"tenant"}, Match: map[string]string{"tenant": "*"},
		Concurrency: proto.Int64(4), Lease: durationpb.New(2 * time.Minute), Mode: quorleasev1.Mode_WARN,
		Ramp: durationpb.New(time.Minute), MaxKeys: proto.Int64(100_000),
		OnQuorumLoss: quorleasev1.FallbackMode_OPEN_ON_LOSS,
	}
	month := &quorleasev1.Limit{
		Name: "team-month", Per: []string{"team"}, Match: map[string]string{"team": "*"},
		Quota: &quorleasev1.Quota{
			Period: quorleasev1.Quota_MONTH, Timezone: "Europe/Berlin",
			Amounts: map[string]int64{"input_tokens": 50_000_000}, WarnBp: []int64{8000},
		},
		Mode: quorleasev1.Mode_ENFORCE, OnQuorumLoss: quorleasev1.FallbackMode_OPEN_ON_LOSS,
	}
	fake.acquire.Queue = &quorleasev1.QueueStatus{
		Position: 3, Eta: durationpb.New(4 * time.Second), Waited: durationpb.New(1500 * time.Millisecond),
	}
	fake.acquire.Warnings = []*quorleasev1.Denial{{
		Reason: quorleasev1.Reason_CONCURRENCY, Limit: "tenant-inflight", Key: "a", Dimension: "slots",
		RetryAfter: durationpb.New(9 * time.Second),
	}}
	fake.list.Limits = []*quorleasev1.Limit{slots, month}
	fake.inspect = &quorleasev1.LimitsInspectResponse{
		Limit: slots, Key: "a", Seen: true, Now: int64(90 * time.Second), Keys: 1, OpenLeases: 4,
		Buckets: []*quorleasev1.BucketState{{
			Dimension: "slots", Burst: 4, Open: 4, Rate: &quorleasev1.Rate{Interval: durationpb.New(time.Second)},
		}},
		Control: &quorleasev1.ControlState{
			Paused: durationpb.New(12 * time.Second), PacePpm: 50_000, WholeIn: durationpb.New(72 * time.Second),
			Reason: "slow_down", Client: "gw-3",
		},
		WindowStarts: timestamppb.New(time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC)),
		WindowEnds:   timestamppb.New(time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)),
		Queues: []*quorleasev1.QueueState{{
			Class: "live", Waiting: 3, Tokens: map[string]int64{"slots": 3}, Oldest: durationpb.New(2 * time.Second),
			Eta:     durationpb.New(7 * time.Second),
			Clients: []*quorleasev1.QueueClient{{Client: "chat", Waiting: 2, Weight: 1}, {Client: "job", Waiting: 1, Weight: 1}},
		}},
	}
	return fake
}

func deniedAnswer() *quorleasev1.AcquireResponse {
	return &quorleasev1.AcquireResponse{
		Decision: quorleasev1.Decision_DENIED, Source: quorleasev1.Source_CONSENSUS,
		Denials: []*quorleasev1.Denial{
			{Reason: quorleasev1.Reason_EXCEEDS_BURST, Limit: "demo", Dimension: "requests", Never: true},
			{
				Reason: quorleasev1.Reason_RATE, Limit: "llm", Key: "team-a", Dimension: "requests",
				RetryAfter: durationpb.New(1500 * time.Millisecond),
			},
		},
		Remaining: []*quorleasev1.Remaining{
			{Limit: "demo", Dimension: "requests", Tokens: 5}, {Limit: "llm", Key: "team-a", Dimension: "requests"},
		},
	}
}

func inspectAnswer(limit *quorleasev1.Limit) *quorleasev1.LimitsInspectResponse {
	return &quorleasev1.LimitsInspectResponse{
		Limit: limit, Key: "team-a", Seen: true, Now: int64(90 * time.Second), Keys: 3, OpenLeases: 2,
		Buckets: []*quorleasev1.BucketState{{
			Dimension: "requests", Level: 12, Debt: 1, Burst: 27, Open: 4,
			Rate:  &quorleasev1.Rate{Amount: 54, Interval: durationpb.New(time.Minute)},
			Slack: durationpb.New(65 * time.Second), SlackTokens: 58,
			Classes: []*quorleasev1.ClassState{
				{Name: "live", Level: 5, SubBurst: 13, EffectiveBurst: 27}, {Name: "batch", Debt: 1, EffectiveBurst: 14},
			},
		}},
		Escrow: []*quorleasev1.EscrowState{
			{Dimension: "requests", Class: "live", Node: "n1", Tokens: 300},
			{Dimension: "requests", Class: "live", Node: "n2", Tokens: 20, Void: 20},
		},
		Reports: []*quorleasev1.ReportState{{
			Client: "gateway", SessionId: someLease, Dimension: "requests", Class: "batch", Tokens: 41,
			At: int64(80 * time.Second),
		}},
	}
}

func statusAnswer() *quorleasev1.ClusterStatusResponse {
	node := func(id, port string, healthy bool) *quorleasev1.NodeStatus {
		return &quorleasev1.NodeStatus{
			Id: id, Role: quorleasev1.Role_VOTER, Healthy: healthy, Version: "v0.1.0",
			Grpc: "127.0.0.1:71" + port, Peer: "127.0.0.1:72" + port, Http: "127.0.0.1:73" + port,
		}
	}
	return &quorleasev1.ClusterStatusResponse{
		ClusterId: "c0ffee00c0ffee00c0ffee00c0ffee00", Leader: "n2", Term: 4,
		Nodes: []*quorleasev1.NodeStatus{node("n1", "01", true), node("n2", "02", true), node("n3", "03", false)},
	}
}
