package sim

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/replica"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/cluster/retries"
)

const (
	stormName = "storm"
	// stormEvery is how often the storm asks each node.
	stormEvery = 40 * time.Millisecond
	// finishWithin is how long a node waits for the fate of what it admitted.
	finishWithin = 5 * time.Second
	reportEvery  = 500 * time.Millisecond
)

// budgets is a node's part in the retry budgets: the real desk and counter.
type budgets struct {
	node   *node
	desk   *retries.Desk
	serial int
}

func newBudgets(n *node) *budgets {
	b := &budgets{node: n, desk: retries.NewDesk(n.host.Name)}
	// The run is the same for the same seed: what a process draws when it starts is
	// given to it.
	b.desk.Counter = retries.New(retries.Config{Node: n.host.Name, Boot: uint64(n.life)})
	n.world.stage.At(n.host, reportEvery, b.report)
	return b
}

// decide is a call from a client as it goes on, nil where it doesn't. It is held
// until its fate is known. A message may come twice, and is two requests then.
func (b *budgets) decide(c *call) *call {
	n := b.node
	asked := c.op.GetAcquire()
	if asked.GetClient() != stormName || c.hops > 0 || c.answer == nil {
		return c
	}
	now := max(n.clock.Estimate(), n.replica.Now())
	nodes := n.serves()
	if n.world.trap == trap.WholeHeadroom {
		nodes = 1
	}
	if n.world.trap == trap.FrozenWindow {
		now = n.replica.Now()
	}
	ruling := b.desk.Decide(n.replica.Machine, retries.Ask{
		At: n.host.Boot(), Now: now, Acquire: asked, Attempt: c.attempt, Nodes: nodes,
	})
	if ruling.Denial != nil {
		n.world.judge.RefusedRetry(n.world.stage.Real(), time.Duration(max(n.clock.Estimate(), n.replica.Now())), n.host.Name,
			ruling.Denial.GetFreesIn() > 0)
		b.desk.Answered(n.host.Boot(), asked, ruling, deniedBy(ruling.Denial), false)
		n.reply(c, reply{result: &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: deniedBy(ruling.Denial)}}})
		return nil
	}
	b.serial++
	id := fmt.Sprint(n.host.Name, n.life, b.serial)
	n.world.judge.AdmittedRetry(n.world.stage.Real(), time.Duration(now), id)
	finished := false
	finish := func(r reply) {
		if finished {
			return
		}
		finished = true
		decided := r.result.GetAcquire()
		recorded := decided.GetGranted() || r.result == nil && r.unsure
		n.world.judge.FinishedRetry(id, recorded)
		b.desk.Answered(n.host.Boot(), asked, ruling, decided, recorded)
	}
	life := n.life
	held := *c
	held.answer = func(r reply) {
		if n.life == life && n.host.Runs() {
			finish(r)
		}
		c.answer(r)
	}
	n.world.stage.At(n.host, finishWithin, func() { finish(reply{unsure: true}) })
	return &held
}

func deniedBy(d *logv1.Denial) *logv1.AcquireResult {
	return &logv1.AcquireResult{Denials: []*logv1.Denial{d}}
}

// report proposes the counts. A report that is lost does no harm.
func (b *budgets) report() {
	n := b.node
	n.world.stage.At(n.host, reportEvery, b.report)
	select {
	case <-b.desk.Counter.Due():
	default:
	}
	b.send()
}

func (b *budgets) send() {
	n := b.node
	report := b.desk.Counter.Report(n.host.Boot())
	if report == nil {
		return
	}
	n.take(&call{op: &logv1.Operation{Kind: &logv1.Operation_ReportRetries{ReportRetries: report}}})
	if n.world.trap == trap.ForgottenWhenSent {
		b.desk.Counter.Applied(report)
	}
}

// applied tells the counter what its replica has applied.
func (b *budgets) applied(entry *logv1.Entry) {
	for _, op := range entry.GetOperations() {
		if report := op.GetReportRetries(); report != nil {
			b.desk.Counter.Applied(report)
		}
	}
	select {
	case <-b.desk.Counter.Due():
		b.send()
	default:
	}
}

// storm is a client of which every request is a retry, at every node at once.
type storm struct {
	client *client
}

func (s *storm) start() { s.client.world.stage.At(s.client.host, stormEvery, s.act) }

func (s *storm) act() {
	c := s.client
	c.world.stage.At(c.host, c.world.stage.Between(stormEvery/2, 2*stormEvery), s.act)
	if !c.world.busy {
		return
	}
	for _, n := range c.world.present {
		op := &logv1.Acquire{
			LeaseId: c.nextID("s"), Client: stormName, Charges: rules.Charges(rules.Free, "", "requests", 1),
		}
		message := &call{op: rules.Acquire(op), answer: func(reply) {}, from: c.host, attempt: 1}
		c.world.network.Send(c.host, n.host, func() { n.take(message) })
	}
}

// counted compares what a replica counts with what was admitted, which the judge
// knows (T29, T31).
func (w *World) counted(r *replica.Replica) {
	total, _ := r.ClientCounts(r.Now(), stormName)
	w.judge.CountedRetries(time.Duration(r.Now()), total, r.Index())
}

// headroom is what a client may retry that has done nothing else.
const headroom = rules.BudgetRequests + 1
