package overview

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/cluster/overview"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/tally"
)

// chunk is how many clients or keys are looked at before entries may be applied
// again: as many take a fraction of a millisecond.
const chunk = 50

// draw takes a picture. The version comes first: what happens meanwhile is worth the
// next one.
func (h *Hub) draw(ctx context.Context) *Picture {
	book, now := h.config.Node.Overview(), time.Now()
	version, view := book.Version(), book.View(now)
	whole := frame(now, h.config.Node.Status(), view)
	waiting := h.queues.of(ctx)
	whole.Limits = h.limits(ctx, pressed(view.Limits, waiting), waiting)
	whole.Clients, whole.ClientsTotal = h.clients(ctx, now, view)
	return &Picture{at: now, version: version, whole: whole, tops: make(map[int]*Shown)}
}

// client is one of the rows, and what its place depends on.
type client struct {
	status *quorleasev1.ClientStatus
	// fraction is that of the requests which were retries, 0 where there are too few
	// requests for it to count.
	fraction int64
}

// clients are the worst of those that are worth a look, and how many there are in all.
func (h *Hub) clients(ctx context.Context, now time.Time, view overview.View) ([]*quorleasev1.ClientStatus, int64) {
	var rows []client
	total := int64(0)
	stats := make([]fsm.ClientStat, 0, len(view.Clients))
	for names := view.Clients; ; {
		some := names[:min(chunk, len(names))]
		names = names[len(some):]
		// Whatever this node has applied: it can't fail.
		_ = h.config.Node.View(ctx, true, func(m *fsm.Machine, at bucket.Instant) {
			total = int64(m.Counts().Clients)
			for _, name := range some {
				stats = append(stats, m.Client(at, name))
			}
		})
		if len(names) == 0 {
			break
		}
	}
	for _, stat := range stats {
		if stat.Count == (tally.Count{}) {
			continue
		}
		rows = append(rows, rowOf(now, stat, view.Over))
	}
	slices.SortFunc(rows, compare)
	list := make([]*quorleasev1.ClientStatus, 0, topMax)
	for _, one := range rows[:min(len(rows), topMax)] {
		list = append(list, one.status)
	}
	return list, total
}

// countsFrom is how many requests make a fraction of a client that has no budget.
const countsFrom = 50

// rowAt shows a client; over says since when clients are over their budget.
func rowAt(now time.Time, stat fsm.ClientStat, over map[string]time.Time) *quorleasev1.ClientStatus {
	status := convert.ClientAnswer(stat)
	if since, there := over[stat.Client]; there && stat.Over {
		status.OverFor = durationpb.New(max(0, now.Sub(since)))
	}
	return status
}

func rowOf(now time.Time, stat fsm.ClientStat, over map[string]time.Time) client {
	one := client{status: rowAt(now, stat, over)}
	least := stat.Budget.GetMinRequests()
	if stat.Budget == nil {
		least = countsFrom
	}
	if stat.Count.Total > least {
		one.fraction = one.status.GetFractionPpm()
	}
	return one
}

// compare puts the worse first.
func compare(a, b client) int {
	x, y := a.status, b.status
	if x.GetOverBudget() != y.GetOverBudget() {
		if x.GetOverBudget() {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.fraction, a.fraction), cmp.Compare(y.GetThrottled(), x.GetThrottled()),
		cmp.Compare(y.GetRetries(), x.GetRetries()), cmp.Compare(y.GetRequests(), x.GetRequests()),
		strings.Compare(x.GetClient(), y.GetClient()))
}

// limits are those of the view, each with its most pressed key: where most wait, else
// the one that the view has.
func (h *Hub) limits(
	ctx context.Context, list []overview.Limit, waiting map[string][]queue.ClassState,
) []*quorleasev1.LimitOverview {
	found := make([]*fsm.Inspection, len(list))
	for from := 0; from < len(list); from += chunk {
		_ = h.config.Node.View(ctx, true, func(m *fsm.Machine, at bucket.Instant) {
			for i := from; i < min(from+chunk, len(list)); i++ {
				name, key := list[i].Config.GetName(), list[i].Key
				if states := waiting[name]; len(states) > 0 {
					key = states[0].Place.Key
				}
				found[i] = glance(m, at, name, key)
			}
		})
	}
	limits := make([]*quorleasev1.LimitOverview, 0, len(list))
	for i, l := range list {
		one := &quorleasev1.LimitOverview{
			Name: l.Config.GetName(), Kind: kindOf(l.Config), GrantedLastMinute: l.Granted, DeniedLastMinute: l.Denied,
			WorstKey: l.Worst,
		}
		if found[i] != nil {
			fill(one, l, convert.InspectAnswer(found[i]))
		}
		queued(one, waiting[one.GetName()])
		limits = append(limits, one)
	}
	return limits
}

// glance is how a key stands, or, where none was asked for yet, one that was never
// seen. Of a limit that has just gone it is nil.
func glance(m *fsm.Machine, at bucket.Instant, name, key string) *fsm.Inspection {
	in, err := m.Glance(at, name, key)
	if err == nil || key != "" {
		return in
	}
	const unseen = "-"
	if in, _ = m.Glance(at, name, unseen); in != nil {
		in.Key = ""
	}
	return in
}

// kindOf is what a limit counts.
func kindOf(l *logv1.Limit) string {
	switch {
	case l.GetUnlimited():
		return "unlimited"
	case l.GetKind() == logv1.Kind_KIND_CONCURRENCY:
		return "concurrency"
	case l.GetKind() == logv1.Kind_KIND_QUOTA:
		return "quota"
	default:
		return "rate"
	}
}

// perSecond makes thousandths of a token a second of tokens in a minute.
const perSecond = 1000 / 60.0

// fill takes over how a key stands.
func fill(one *quorleasev1.LimitOverview, l overview.Limit, in *quorleasev1.LimitsInspectResponse) {
	one.Mode, one.Keys, one.Key, one.Control = in.GetLimit().GetMode(), in.GetKeys(), in.GetKey(), in.GetControl()
	most := int64(-1)
	for _, b := range in.GetBuckets() {
		d := &quorleasev1.DimensionOverview{
			Name: b.GetDimension(), Level: b.GetLevel() - b.GetDebt(), Burst: b.GetBurst(), Rate: b.GetRate(),
			UsedPpm: usedPPM(b.GetLevel()-b.GetDebt(), b.GetBurst()),
		}
		for i, spec := range l.Config.GetDimensions() {
			if spec.GetName() == d.Name && i < len(l.Tokens) {
				d.GrantedMilliPerSecond = int64(float64(l.Tokens[i]) * perSecond)
			}
		}
		if d.UsedPpm > most {
			most, one.Binding = d.UsedPpm, d.Name
		}
		one.Dimensions = append(one.Dimensions, d)
	}
}

// usedPPM is what is missing from a burst.
func usedPPM(level, burst int64) int64 {
	const whole = 1_000_000
	switch {
	case burst <= 0 || level <= 0:
		return whole
	case level >= burst:
		return 0
	}
	return min(whole, max(0, whole-int64(float64(level)/float64(burst)*whole)))
}

// queued adds what waits.
func queued(one *quorleasev1.LimitOverview, states []queue.ClassState) {
	if len(states) == 0 {
		return
	}
	one.Queues = convert.QueueStates(states)
	var oldest, eta time.Duration
	for _, s := range states {
		one.Waiting += s.Waiting
		oldest, eta = max(oldest, s.Oldest), max(eta, s.ETA)
	}
	one.Oldest, one.Eta = durationpb.New(oldest), durationpb.New(eta)
}
