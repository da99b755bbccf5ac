package overview

import (
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/overview"
)

// Picture is how everything stood at one moment. It does not change.
type Picture struct {
	at      time.Time
	version uint64
	// whole has as many clients as are ever shown.
	whole *quorleasev1.OverviewWatchResponse

	mu   sync.Mutex
	tops map[int]*Shown
}

// Shown is a picture with so many clients as somebody asked for. It is shared by all
// who asked for as many, and must not be changed.
type Shown struct {
	Response *quorleasev1.OverviewWatchResponse

	once sync.Once
	text []byte
	err  error
}

// top is the picture with so many clients.
func (p *Picture) top(count int) *Shown {
	count = min(count, len(p.whole.GetClients()))
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.tops[count]; s != nil {
		return s
	}
	w := p.whole
	s := &Shown{Response: &quorleasev1.OverviewWatchResponse{
		Time: w.Time, Node: w.Node, HasQuorum: w.HasQuorum, Leader: w.Leader, Nodes: w.Nodes,
		Clients: w.Clients[:count], ClientsTotal: w.ClientsTotal, Limits: w.Limits, LimitsTotal: w.LimitsTotal,
		History: w.History, Alerts: w.Alerts, AlertsTotal: w.AlertsTotal, RetryAlerts: w.RetryAlerts,
		NeverLimitedP95: w.NeverLimitedP95,
	}}
	p.tops[count] = s
	return s
}

// Text is the picture in another form, which is made once for everybody: every caller
// passes the same function.
func (s *Shown) Text(write func(proto.Message) ([]byte, error)) ([]byte, error) {
	s.once.Do(func() { s.text, s.err = write(s.Response) })
	return s.text, s.err
}

// frame is a picture without clients and limits.
func frame(now time.Time, status cluster.Status, view overview.View) *quorleasev1.OverviewWatchResponse {
	answer := &quorleasev1.OverviewWatchResponse{
		Time: timestamppb.New(now), Node: status.Self, HasQuorum: status.Quorum == cluster.HasLeader,
		Leader: status.Leader, Nodes: convert.StatusAnswer(status).GetNodes(),
		LimitsTotal: int64(view.LimitsTotal), AlertsTotal: int64(view.FiringTotal), RetryAlerts: int64(view.RetryAlerts),
	}
	if view.HasP95 {
		answer.NeverLimitedP95 = durationpb.New(view.P95)
	}
	for _, p := range view.Hour {
		answer.History = append(answer.History, &quorleasev1.RatePoint{
			StartUnixMs: p.Start, Granted: p.Granted, Denied: p.Denied, Waited: p.Waited,
			Ok: p.OK, Throttled: p.Throttled, Retries: p.Retries,
		})
	}
	for _, one := range view.Firing {
		answer.Alerts = append(answer.Alerts, &quorleasev1.FiringAlert{
			Kind: string(one.Kind), Client: one.Name, Limit: one.Limit, Node: one.Node,
			Severity: quorleasev1.Severity(one.Severity),
			Since:    timestamppb.New(one.Time), Value: one.Value, Text: one.Text,
		})
	}
	return answer
}
