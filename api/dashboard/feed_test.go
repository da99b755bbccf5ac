package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quorlease/quorlease/api/dashboard"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// pulse is how often the feed repeats its picture.
const pulse = 500 * time.Millisecond

// fakeFeed serves the page and the pictures that a test wants it to show.
type fakeFeed struct {
	*httptest.Server

	mu      sync.Mutex
	picture []byte        // guarded by mu
	changed chan struct{} // guarded by mu; closed when anything below it changes
	refuse  bool          // guarded by mu
	crowded bool          // guarded by mu
}

func newFakeFeed(t *testing.T, picture *quorleasev1.OverviewWatchResponse) *fakeFeed {
	t.Helper()
	f := &fakeFeed{changed: make(chan struct{})}
	f.show(t, picture)
	mux := http.NewServeMux()
	for _, file := range dashboard.Files() {
		path := file.Path
		if path == "/" {
			path = "/{$}"
		}
		mux.Handle("GET "+path, file)
	}
	mux.HandleFunc("GET /v1/overview:watch", f.watch)
	mux.HandleFunc("GET /v1/overview", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"message":"this node is shutting down"}`, http.StatusServiceUnavailable)
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// show is what the page gets from now on.
func (f *fakeFeed) show(t *testing.T, picture *quorleasev1.OverviewWatchResponse) {
	t.Helper()
	data, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(picture)
	if err != nil {
		t.Fatal(err)
	}
	f.change(func() { f.picture = data })
}

// crowd ends the streams and says of new ones that there are too many.
func (f *fakeFeed) crowd() { f.change(func() { f.refuse, f.crowded = true, true }) }

// cut ends the streams and refuses new ones, or allows them again.
func (f *fakeFeed) cut(refuse bool) { f.change(func() { f.refuse = refuse }) }

func (f *fakeFeed) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeFeed) watch(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	crowded := f.crowded
	f.mu.Unlock()
	if crowded {
		http.Error(w, `{"message":"too many watch"}`, http.StatusTooManyRequests)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	for {
		f.mu.Lock()
		picture, changed, refuse := f.picture, f.changed, f.refuse
		f.mu.Unlock()
		if refuse {
			return
		}
		if _, err := fmt.Fprintf(w, "event: overview\ndata: %s\n\n", picture); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-ticker.C:
		}
	}
}

func node(id string, healthy bool) *quorleasev1.NodeStatus {
	return &quorleasev1.NodeStatus{
		Id: id, Role: quorleasev1.Role_VOTER, Healthy: healthy, Http: "10.0.0." + id[1:] + ":7301", Version: "1.4.0",
	}
}

// calm is a quiet hour: one client that retries less than it may.
func calm() *quorleasev1.OverviewWatchResponse {
	now := time.Now()
	p := &quorleasev1.OverviewWatchResponse{
		Time: timestamppb.New(now), Node: "n1", Leader: "n2", HasQuorum: true,
		Nodes:        []*quorleasev1.NodeStatus{node("n1", true), node("n2", true), node("n3", true)},
		Clients:      []*quorleasev1.ClientStatus{scorer(100, 500)},
		ClientsTotal: 1, LimitsTotal: 1,
		Limits:          []*quorleasev1.LimitOverview{providerLimit()},
		NeverLimitedP95: durationpb.New(1240 * time.Microsecond),
	}
	for i := range 360 {
		start := now.Add(time.Duration(i-360) * 10 * time.Second).Truncate(10 * time.Second)
		p.History = append(p.History, &quorleasev1.RatePoint{
			StartUnixMs: start.UnixMilli(), Granted: int64(150 + i%7), Ok: int64(140 + i%11),
		})
	}
	return p
}

// scorer is the client of the incident with so many retries among its requests.
func scorer(retries, requests int64) *quorleasev1.ClientStatus {
	honours := false
	allowed := (requests - retries) / 4
	return &quorleasev1.ClientStatus{
		Client: "batch-scorer", Requests: requests, Retries: retries, FractionPpm: retries * 1_000_000 / requests,
		RetriesLeft: max(0, allowed-retries), RetriesAllowed: allowed, RetryBudget: "default",
		OverBudget: retries*5 > requests, Throttled: 8412, Denied: 40, Early: 31, HonoursWaits: &honours,
		Error: "rate_limit_exceeded", Mode: quorleasev1.Mode_ENFORCE,
	}
}

func providerLimit() *quorleasev1.LimitOverview {
	minute := durationpb.New(time.Minute)
	return &quorleasev1.LimitOverview{
		Name: "provider", Mode: quorleasev1.Mode_ENFORCE, Kind: "rate",
		Keys: 3, Key: "gpt-large/eu", Binding: "input_tokens",
		Dimensions: []*quorleasev1.DimensionOverview{
			{
				Name: "requests", Level: 612, Burst: 1000, Rate: &quorleasev1.Rate{Amount: 1000, Interval: minute},
				GrantedMilliPerSecond: 14_050, UsedPpm: 388_000,
			},
			{
				Name: "input_tokens", Level: 21_400, Burst: 400_000, Rate: &quorleasev1.Rate{Amount: 400_000, Interval: minute},
				GrantedMilliPerSecond: 6_120_500, UsedPpm: 946_500,
			},
		},
		Queues: []*quorleasev1.QueueState{{Class: "live", Waiting: 12}, {Class: "batch", Waiting: 400}}, Waiting: 412,
		Oldest: durationpb.New(31 * time.Second), Eta: durationpb.New(2 * time.Minute),
		GrantedLastMinute: 843, DeniedLastMinute: 526, WorstKey: "gpt-large/us",
	}
}

// storm is sixteen minutes into it.
func storm() *quorleasev1.OverviewWatchResponse {
	p := calm()
	yes := true
	over := scorer(4600, 5000)
	over.OverFor, over.FreesIn = durationpb.New(12*time.Second), durationpb.New(41*time.Second)
	p.Clients = []*quorleasev1.ClientStatus{
		over,
		{
			Client: "nightly-embed", Requests: 2210, Retries: 271, FractionPpm: 122_600, RetriesLeft: 213, RetriesAllowed: 484,
			RetryBudget: "default", Throttled: 96, Denied: 38, Early: 1, HonoursWaits: &yes, Error: "overloaded",
			Mode: quorleasev1.Mode_ENFORCE,
		},
		{
			Client: "checkout", Requests: 18_450, Retries: 92, FractionPpm: 4_990, RetriesLeft: 4497, RetriesAllowed: 4589,
			RetryBudget: "default", Throttled: 44, Denied: 21, HonoursWaits: &yes, Error: "rate_limit_exceeded",
			Mode: quorleasev1.Mode_WARN,
		},
		{Client: "support-bot", Requests: 6_902, Throttled: 31, Mode: quorleasev1.Mode_ENFORCE},
	}
	p.ClientsTotal = 37
	p.Alerts = []*quorleasev1.FiringAlert{
		{
			Kind: "ClientOverBudget", Client: "batch-scorer", Severity: quorleasev1.Severity_WARNING,
			Since: timestamppb.New(p.GetTime().AsTime().Add(-12 * time.Second)), Value: "92%",
			Text: "batch-scorer retry fraction 92%, its retry budget is spent and refuses it: 4600 of 5000 requests in 5 min",
		},
		{
			Kind: "ClientRetryWarning", Client: "nightly-embed", Severity: quorleasev1.Severity_WARNING,
			Since: timestamppb.New(p.GetTime().AsTime().Add(-3 * time.Minute)), Value: "12%",
			Text: "nightly-embed retry fraction 12% for 2 min: 271 of 2210 requests in 5 min, mostly overloaded",
		},
	}
	p.AlertsTotal, p.RetryAlerts = 2, 2
	paused := &quorleasev1.LimitOverview{
		Name: "fallback", Mode: quorleasev1.Mode_SHADOW, Kind: "concurrency", Keys: 1, Binding: "slots",
		Dimensions: []*quorleasev1.DimensionOverview{{Name: "slots", Level: 0, Burst: 40, UsedPpm: 1_000_000}},
		Control: &quorleasev1.ControlState{
			Paused: durationpb.New(8 * time.Second), PacePpm: 400_000, WholeIn: durationpb.New(time.Minute),
			Reason: "overloaded", Client: "gateway-2",
		},
		GrantedLastMinute: 61,
	}
	p.Limits, p.LimitsTotal = append(p.Limits, paused), 2
	for i, point := range p.GetHistory() {
		if i > 264 {
			point.Throttled, point.Ok, point.Denied = int64(80+i%9), int64(86+i%13), int64(70+i%9)
		}
	}
	return p
}

// without is the picture some time after its worst client was stopped.
func without(p *quorleasev1.OverviewWatchResponse) *quorleasev1.OverviewWatchResponse {
	after, ok := proto.Clone(p).(*quorleasev1.OverviewWatchResponse)
	if !ok {
		return p
	}
	after.GetHistory()[359].Throttled, after.GetHistory()[358].Throttled = 0, 0
	return after
}
