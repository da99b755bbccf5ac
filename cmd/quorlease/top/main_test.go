package top

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// update rewrites the golden files instead of comparing with them.
var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// taken is when the pictures of tests were taken, and when they came.
var taken = time.Date(2026, 10, 7, 17, 4, 0, 0, time.UTC)

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got); `go test -update` rewrites it:\n%s", path, diff)
	}
}

// storm is a picture of a job that storms, with something in every field.
func storm() *quorleasev1.OverviewWatchResponse {
	node := func(id, port string, healthy bool) *quorleasev1.NodeStatus {
		return &quorleasev1.NodeStatus{
			Id: id, Role: quorleasev1.Role_VOTER, Healthy: healthy, Version: "v0.1.0",
			Grpc: "127.0.0.1:71" + port, Peer: "127.0.0.1:72" + port, Http: "127.0.0.1:73" + port,
		}
	}
	nodes := []*quorleasev1.NodeStatus{node("n1", "01", true), node("n2", "02", true), node("n3", "03", false)}
	nodes[0].Lag, nodes[1].Lag = proto.Uint64(12), proto.Uint64(0)
	answer := &quorleasev1.OverviewWatchResponse{
		Time: timestamppb.New(taken), Node: "n1", HasQuorum: true, Leader: "n2", Nodes: nodes,
		Clients: stormClients(), ClientsTotal: 340,
		Limits: stormLimits(), LimitsTotal: 4,
		Alerts: []*quorleasev1.FiringAlert{{
			Kind: "ClientOverBudget", Client: "batch-scorer", Severity: quorleasev1.Severity_CRITICAL,
			Since: timestamppb.New(taken.Add(-130 * time.Second)), Value: "92%", Text: "batch-scorer retry fraction 92%",
		}, {
			Kind: "ClientRetryWarning", Client: "reports", Severity: quorleasev1.Severity_WARNING,
			Since: timestamppb.New(taken.Add(-5 * time.Second)), Value: "12%", Text: "reports retry fraction 12%",
		}, {
			Kind: "LimitPaused", Limit: "azure-gpt4o", Severity: quorleasev1.Severity_INFO,
			Since: timestamppb.New(taken.Add(-time.Second)), Value: "us-east", Text: "slow_down, 12s",
		}},
		AlertsTotal: 3, RetryAlerts: 2, NeverLimitedP95: durationpb.New(1400 * time.Microsecond),
	}
	for i := range int64(90) {
		answer.History = append(answer.History, &quorleasev1.RatePoint{
			StartUnixMs: taken.UnixMilli() - 10_000*(90-i), Granted: 500, Denied: i, Waited: 3,
			Ok: 600 - 5*i, Throttled: max(i-40, 0) * 8, Retries: i,
		})
	}
	return answer
}

func stormClients() []*quorleasev1.ClientStatus {
	return []*quorleasev1.ClientStatus{{
		Client: "batch-scorer", Requests: 4100, Retries: 3772, FractionPpm: 920_000, RetriesAllowed: 820,
		RetryBudget: "default", OverBudget: true, Throttled: 8412, Denied: 40, Early: 38,
		HonoursWaits: proto.Bool(false), Error: "rate_limit_exceeded", Mode: quorleasev1.Mode_ENFORCE,
		FreesIn: durationpb.New(96 * time.Second), OverFor: durationpb.New(130 * time.Second),
	}, {
		Client: "reports", Requests: 500, Retries: 60, FractionPpm: 120_000, RetriesLeft: 40, RetriesAllowed: 100,
		RetryBudget: "default", Throttled: 75, HonoursWaits: proto.Bool(true), Error: "overloaded",
		Mode: quorleasev1.Mode_SHADOW,
	}, {
		Client: "chat-frontend-for-the-whole-of-europe-and-more", Requests: 12_000, FractionPpm: 0,
		RetriesLeft: 2400, RetriesAllowed: 2400, RetryBudget: "default", Mode: quorleasev1.Mode_ENFORCE,
	}, {
		Client: "nightly", Requests: 10, Throttled: 9,
	}, {
		Client: "自動採点", Requests: 100, Retries: 3, FractionPpm: 30_000, RetriesLeft: 17, RetriesAllowed: 20,
		RetryBudget: "default", Throttled: 3, Mode: quorleasev1.Mode_ENFORCE,
	}}
}

func stormLimits() []*quorleasev1.LimitOverview {
	perMinute := func(n int64) *quorleasev1.Rate {
		return &quorleasev1.Rate{Amount: n, Interval: durationpb.New(time.Minute)}
	}
	return []*quorleasev1.LimitOverview{{
		Name: "azure-gpt4o", Mode: quorleasev1.Mode_ENFORCE, Kind: "rate", Keys: 3, Key: "us-east",
		Dimensions: []*quorleasev1.DimensionOverview{
			{Name: "requests", Level: 800, Burst: 1000, Rate: perMinute(1000), GrantedMilliPerSecond: 2666},
			{
				Name: "input_tokens", Level: 12_000, Burst: 400_000, Rate: perMinute(400_000), UsedPpm: 970_000,
				GrantedMilliPerSecond: 6_666_700,
			},
		},
		Binding: "input_tokens", Waiting: 412, Oldest: durationpb.New(9 * time.Second), Eta: durationpb.New(75 * time.Second),
		Control:           &quorleasev1.ControlState{Paused: durationpb.New(12 * time.Second), PacePpm: 50_000},
		GrantedLastMinute: 160, DeniedLastMinute: 88, WorstKey: "us-east",
	}, {
		Name: "spend", Mode: quorleasev1.Mode_ENFORCE, Kind: "quota", Binding: "input_tokens",
		Dimensions: []*quorleasev1.DimensionOverview{{
			Name: "input_tokens", Level: -3, Burst: 50_000_000, UsedPpm: 1_000_000,
			Rate: &quorleasev1.Rate{Amount: 50_000_000, Interval: durationpb.New(31 * 24 * time.Hour)},
		}},
		Control: &quorleasev1.ControlState{Blocked: true},
	}, {
		Name: "tenant-inflight", Mode: quorleasev1.Mode_WARN, Kind: "concurrency", Keys: 1, Key: "t", Binding: "slots",
		Dimensions: []*quorleasev1.DimensionOverview{{Name: "slots", Level: 1, Burst: 4, UsedPpm: 750_000}},
	}, {
		Name: "unused", Mode: quorleasev1.Mode_ENFORCE, Kind: "rate",
	}}
}
