package top

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/show"
)

// picture is an answer of a node, ready to be drawn: its texts are clean.
type picture struct {
	// at is when it came, by the clock here; taken when it was made, by the node's.
	at, taken time.Time
	endpoint  string

	node, leader     string
	quorum           bool
	healthy, members int
	// alerts fire; retryAlerts are those of them about retry budgets.
	alerts, retryAlerts int64
	// unlimited is how long decisions take that nothing limits, empty where there
	// were none.
	unlimited     string
	throttled, ok []int64
	tables        [panes]table
	// dimensions are the rows of limits with all dimensions, the one that binds first.
	dimensions []row
}

// table is what one pane shows. total counts rows that the answer left out as
// well.
type table struct {
	rows  []row
	total int64
}

// textMax bounds a text before it is cleaned, in bytes. Names of clients and keys
// are no longer.
const textMax = 512

// clean makes a text that came over the wire fit for a terminal: what could steer
// it, turn the text around or hide is escaped.
func clean(s string) string {
	if len(s) > textMax {
		s = strings.ToValidUTF8(s[:textMax], "")
	}
	return exit.Printable(s)
}

func newPicture(msg pictureMsg) *picture {
	a := msg.answer
	p := &picture{
		at: msg.at, taken: a.GetTime().AsTime(), endpoint: clean(msg.endpoint),
		node: clean(a.GetNode()), leader: clean(a.GetLeader()), quorum: a.GetHasQuorum(),
		members: len(a.GetNodes()), alerts: a.GetAlertsTotal(), retryAlerts: a.GetRetryAlerts(),
		unlimited: brief(a.GetNeverLimitedP95()),
	}
	warned := map[string]bool{}
	for _, alert := range a.GetAlerts() {
		warned[alert.GetClient()] = warned[alert.GetClient()] || alert.GetKind() == "ClientRetryWarning"
		p.tables[alerts].rows = append(p.tables[alerts].rows, alertRow(alert, p.taken))
	}
	for _, c := range a.GetClients() {
		p.tables[clients].rows = append(p.tables[clients].rows, clientRow(c, warned[c.GetClient()]))
	}
	for _, l := range a.GetLimits() {
		rows := limitRows(l)
		p.tables[limits].rows = append(p.tables[limits].rows, rows[0])
		p.dimensions = append(p.dimensions, rows...)
	}
	for _, n := range a.GetNodes() {
		if n.GetHealthy() {
			p.healthy++
		}
		p.tables[nodes].rows = append(p.tables[nodes].rows, nodeRow(n, n.GetId() == a.GetLeader()))
	}
	for _, point := range a.GetHistory() {
		p.throttled = append(p.throttled, max(point.GetThrottled(), 0))
		p.ok = append(p.ok, max(point.GetOk(), 0))
	}
	for of, total := range [panes]int64{
		clients: a.GetClientsTotal(), limits: a.GetLimitsTotal(), nodes: int64(len(a.GetNodes())),
		alerts: a.GetAlertsTotal(),
	} {
		p.tables[of].total = max(total, int64(len(p.tables[of].rows)))
	}
	return p
}

// pointsPerMinute of the history.
const pointsPerMinute = 6

// lastMinute sums the end of a series, with the point that has not ended.
func lastMinute(series []int64) (sum int64) {
	for _, n := range series[max(len(series)-pointsPerMinute, 0):] {
		sum += n
	}
	return sum
}

// brief is a duration as short as a screen wants it: in seconds, or in
// milliseconds where it is less than one. Empty for an absent one.
func brief(d *durationpb.Duration) string {
	if d == nil {
		return ""
	}
	return briefly(d.AsDuration())
}

func briefly(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	}
	return d.Truncate(time.Second).String()
}

// clientRow is one of those who ask.
func clientRow(c *quorleasev1.ClientStatus, warned bool) row {
	r := row{fill: -1}
	state, budget, left, spent := "-", "", "", int64(math.MinInt64)
	if c.GetRetryBudget() != "" {
		state, budget = "ok", c.GetRetryBudget()
		left = fmt.Sprintf("%d/%d", c.GetRetriesLeft(), c.GetRetriesAllowed())
		r.fill, spent = partsPerMillion(c.GetRetriesLeft(), c.GetRetriesAllowed()), -c.GetRetriesLeft()
		if c.GetMode() != quorleasev1.Mode_ENFORCE && c.GetMode() != quorleasev1.Mode_MODE_UNSPECIFIED {
			budget += ":" + strings.ToLower(c.GetMode().String())
		}
	}
	switch {
	case c.GetOverBudget():
		state, r.tone = "OVER", bad
	case warned:
		state, r.tone = "warned", worrying
	}
	honours := ""
	if c.HonoursWaits != nil {
		honours = show.YesNo(c.GetHonoursWaits())
	}
	r.add(c.GetClient(), 0)
	r.add(state, 0)
	r.add(show.Number(c.GetThrottled()), c.GetThrottled())
	// A tenth of a percent is as exact as anybody wants it here.
	r.add(show.Percent(c.GetFractionPpm()/1000*10), c.GetFractionPpm())
	r.add(left, spent)
	r.add(honours, 0)
	r.add(budget, 0)
	r.add(c.GetError(), 0)
	r.add(brief(c.GetOverFor()), int64(c.GetOverFor().AsDuration()))
	r.add(brief(c.GetFreesIn()), int64(c.GetFreesIn().AsDuration()))
	return r
}

// partsPerMillion is part of whole, 0 to 1,000,000.
func partsPerMillion(part, whole int64) int64 {
	if part <= 0 || whole <= 0 {
		return 0
	}
	return int64(min(float64(part)/float64(whole), 1) * 1e6)
}

// limitRows are a limit with the dimension that binds, of the key that is pressed
// most, and below it the others.
func limitRows(l *quorleasev1.LimitOverview) []row {
	var binding *quorleasev1.DimensionOverview
	for _, d := range l.GetDimensions() {
		if d.GetName() == l.GetBinding() {
			binding = d
			break
		}
	}
	first := limitRow(l, binding, l.GetBinding())
	first.add(show.Number(l.GetWaiting()), l.GetWaiting())
	first.add(show.Number(l.GetDeniedLastMinute()), l.GetDeniedLastMinute())
	first.add(brief(l.GetOldest()), int64(l.GetOldest().AsDuration()))
	first.add(brief(l.GetEta()), int64(l.GetEta().AsDuration()))
	first.add(grantedOf(binding), 0)
	first.add(show.Number(l.GetKeys()), l.GetKeys())
	rows := []row{first}
	for _, d := range l.GetDimensions() {
		if d == binding {
			continue
		}
		other := limitRow(l, d, "("+d.GetName()+")")
		// What is of the whole limit stands once, and sorts it all.
		for _, of := range []int64{
			l.GetWaiting(), l.GetDeniedLastMinute(), int64(l.GetOldest().AsDuration()), int64(l.GetEta().AsDuration()),
		} {
			other.add("", of)
		}
		other.add(grantedOf(d), 0)
		other.add("", l.GetKeys())
		rows = append(rows, other)
	}
	return rows
}

// limitRow begins the row of one dimension, nil for that of a limit without any.
func limitRow(l *quorleasev1.LimitOverview, d *quorleasev1.DimensionOverview, title string) row {
	r := row{fill: -1}
	name := l.GetName()
	if l.GetKey() != "" {
		name += "/" + l.GetKey()
	}
	level, rate, pressed := "", l.GetKind(), int64(math.MinInt64)
	if d != nil {
		level, rate = fmt.Sprintf("%d/%d", d.GetLevel(), d.GetBurst()), rateOf(l.GetKind(), d)
		r.fill = partsPerMillion(d.GetLevel(), d.GetBurst())
		pressed = -r.fill
	}
	r.tone = limitTone(l, r.fill == 0)
	r.add(name, 0)
	r.add(stateOf(l), 0)
	r.add(level, pressed)
	r.add(title, 0)
	r.add(rate, 0)
	return r
}

func grantedOf(d *quorleasev1.DimensionOverview) string {
	if d == nil {
		return ""
	}
	return fmt.Sprintf("%.1f/s", float64(d.GetGrantedMilliPerSecond())/1000)
}

// rateOf is how a dimension fills up: what is in flight does not.
func rateOf(kind string, d *quorleasev1.DimensionOverview) string {
	if kind == "concurrency" {
		return kind
	}
	return show.Rate(d.GetRate())
}

func limitTone(l *quorleasev1.LimitOverview, empty bool) tone {
	switch {
	case l.GetControl().GetBlocked():
		return bad
	case l.GetControl().GetPaused() != nil, l.GetWaiting() > 0, empty:
		return worrying
	default:
		return plain
	}
}

// stateOf is what keeps a limit from handing out its rate, in one word, and its
// mode where it does not enforce.
func stateOf(l *quorleasev1.LimitOverview) string {
	var words []string
	switch c := l.GetControl(); {
	case c == nil:
	case c.GetBlocked():
		words = append(words, "BLOCKED")
	case c.GetPaused() != nil:
		words = append(words, "paused:"+brief(c.GetPaused()))
	case c.GetWholeIn() != nil:
		words = append(words, "ramp:"+show.Percent(c.GetPacePpm()/10_000*100))
	}
	if l.GetMode() != quorleasev1.Mode_ENFORCE && l.GetMode() != quorleasev1.Mode_MODE_UNSPECIFIED {
		words = append(words, strings.ToLower(l.GetMode().String()))
	}
	if len(words) == 0 {
		return "ok"
	}
	return strings.Join(words, ",")
}

func nodeRow(n *quorleasev1.NodeStatus, leads bool) row {
	r := row{fill: -1}
	role, health := strings.ToLower(n.GetRole().String()), "healthy"
	if leads {
		role = "leader"
	}
	if !n.GetHealthy() {
		health, r.tone = "UNHEALTHY", bad
	}
	r.add(n.GetId(), 0)
	r.add(role, 0)
	behind, lag := "", int64(-1)
	if n.Lag != nil {
		lag = int64(min(n.GetLag(), math.MaxInt64))
		behind = show.Number(lag)
	}
	r.add(health, 0)
	r.add(behind, lag)
	r.add(n.GetGrpc(), 0)
	r.add(n.GetHttp(), 0)
	r.add(n.GetVersion(), 0)
	return r
}

// alertRow is an alert as old as it was when the picture was taken.
func alertRow(a *quorleasev1.FiringAlert, taken time.Time) row {
	r := row{fill: -1}
	switch a.GetSeverity() {
	case quorleasev1.Severity_CRITICAL:
		r.tone = bad
	case quorleasev1.Severity_WARNING:
		r.tone = worrying
	default:
	}
	about := cmp.Or(a.GetClient(), a.GetLimit(), a.GetNode())
	age := time.Duration(0)
	if a.GetSince() != nil {
		age = max(taken.Sub(a.GetSince().AsTime()), 0)
	}
	r.add(a.GetKind(), 0)
	r.add(strings.ToLower(a.GetSeverity().String()), int64(a.GetSeverity()))
	r.add(about, 0)
	r.add(a.GetValue(), 0)
	r.add(briefly(age), int64(age))
	r.add(a.GetText(), 0)
	return r
}
