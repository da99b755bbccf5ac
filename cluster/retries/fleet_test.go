package retries_test

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/retry"
	"github.com/quorlease/quorlease/fsm/tally"
	"github.com/quorlease/quorlease/fsm/window"
)

// standard is the default retry budget of the contract.
func standard() retry.Rule {
	return retry.Rule{
		MaxRetries: 3, MaxFraction: 2000, MinRequests: 50, Window: 5 * time.Minute, RetryAfter: time.Minute,
	}
}

// replica is what a node's state machine keeps of the reports.
type replica struct {
	now    bucket.Instant
	length time.Duration
	counts map[string]*tally.Tally
}

func newReplica(rule retry.Rule) *replica {
	return &replica{length: window.Length(rule.Window), counts: make(map[string]*tally.Tally)}
}

func (r *replica) apply(now int64, report *logv1.ReportRetries) {
	r.now = max(r.now, bucket.Instant(now))
	for _, s := range report.GetSlices() {
		one := tally.Report{Slice: s.GetSlice(), Count: tally.Count{
			Total: s.GetTotal(), Retries: s.GetRetries(), Throttled: s.GetThrottled(),
			Denied: s.GetDenied(), Early: s.GetEarly(),
		}, Fault: tally.Fault{Text: s.GetError(), Times: s.GetErrors()}}
		if !one.Counts(r.now, r.length) {
			continue
		}
		if r.counts[s.GetClient()] == nil {
			fresh := tally.New(r.length)
			r.counts[s.GetClient()] = &fresh
		}
		r.counts[s.GetClient()].Add(r.now, tally.Process{Node: report.GetNode(), Boot: report.GetBoot()}, one)
	}
}

func (r *replica) sum(now int64, client string) (total, retried int64) {
	recent := r.recent(now, client)
	return recent.Total, recent.Retries
}

func (r *replica) recent(now int64, client string) tally.Count {
	if c := r.counts[client]; c != nil {
		return c.Recent(bucket.Instant(now))
	}
	return tally.Count{}
}

// Counted implements retries.Replica.
func (r *replica) Counted(from tally.Process, client string, slice int64) tally.Count {
	if c := r.counts[client]; c != nil {
		return c.Counted(from, slice)
	}
	return tally.Count{}
}

// entry is one applied report with its stamp.
type entry struct {
	now    int64
	report *logv1.ReportRetries
}

// node is one simulated node.
type node struct {
	*retries.Counter
	name    string
	boot    uint64
	replica *replica
	// applied is how much of the log it has applied.
	applied int
	// unseen are the retries it admitted that its replica does not hold; part
	// is the largest part it ever had.
	part int64
}

// fleet is nodes around one log.
type fleet struct {
	rule  retry.Rule
	nodes []*node
	log   []entry
	// now is authority time and every node's steady clock.
	now int64
	// total and retried are what was admitted in truth.
	total, retried int64
}

func newFleet(nodes int, rule retry.Rule) *fleet {
	f := &fleet{rule: rule}
	for i := range nodes {
		n := &node{name: string(rune('a' + i)), replica: newReplica(rule)}
		f.nodes = append(f.nodes, n)
		f.boot(n)
	}
	return f
}

// boot starts a node's process anew: what it counted in memory is lost, what
// its replica holds is not.
func (f *fleet) boot(n *node) {
	n.boot++
	n.Counter = retries.New(retries.Config{Node: n.name, Boot: n.boot})
}

// ask decides on one request and finishes it at once.
func (f *fleet) ask(n *node, client string, attempt uint32) retries.Decision {
	d, hold := f.hold(n, client, attempt)
	n.Finish(time.Duration(f.now), hold, true, tally.Count{})
	if d.Verdict == retries.Admit {
		f.total++
		if attempt > 0 {
			f.retried++
		}
	}
	return d
}

func (f *fleet) hold(n *node, client string, attempt uint32) (retries.Decision, retries.Hold) {
	total, retried := n.replica.sum(f.now, client)
	n.part = max(n.part, retry.Part(f.rule.Headroom(total, retried), len(f.nodes)))
	return n.Decide(time.Duration(f.now), bucket.Instant(f.now), retries.Request{
		Client: client, Attempt: attempt, Rule: f.rule, Total: total, Retries: retried, Nodes: len(f.nodes),
		Known: n.replica.counts[client] != nil, Replica: n.replica,
	})
}

// commit puts a report into the log.
func (f *fleet) commit(report *logv1.ReportRetries) {
	if report != nil {
		f.log = append(f.log, entry{f.now, report})
	}
}

// catchUp lets a node apply up to the first count entries of the log.
func (f *fleet) catchUp(n *node, count int) {
	for ; n.applied < min(count, len(f.log)); n.applied++ {
		e := f.log[n.applied]
		n.replica.apply(e.now, e.report)
		n.Applied(e.report)
	}
}

// failer is a test of the testing package or of rapid.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// settle reports and applies until nothing is left to report.
func (f *fleet) settle(t failer) {
	t.Helper()
	for range 10 {
		quiet := true
		for _, n := range f.nodes {
			f.catchUp(n, len(f.log))
			if report := n.Report(time.Duration(f.now)); report != nil {
				quiet = false
				f.commit(report)
			}
		}
		if quiet {
			return
		}
	}
	t.Fatalf("nodes still report after 10 rounds")
}

// allowed is the most retries that one node with all counts would have admitted
// by the time that it had admitted total requests.
func allowed(r retry.Rule, total int64) int64 {
	return max(min(total, r.MinRequests+1), (total-1)*r.MaxFraction/retry.Whole+1, min(total, r.Floor()))
}
