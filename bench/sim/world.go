package sim

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/holder"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/member"
	"github.com/quorlease/quorlease/bench/sim/quorum"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/share"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/bench/sim/tally"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/bench/sim/witness"
	"github.com/quorlease/quorlease/cluster/calendar"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// wallMost is how far ahead the wall clock of the cluster may be: as far as the
// clocks of most of its machines.
const wallMost = 6 * time.Second

// World is everything that there is in one run.
type World struct {
	trap    trap.Kind
	stage   *stage.Stage
	network *stage.Network
	group   *quorum.Group
	// nodes are all that ever are, present those that run, or will again.
	nodes, present []*node
	// members has them come and go, in some worlds.
	members *member.Cluster
	clients []*client
	// recycler hoards, in some worlds.
	recycler *recycler
	storm    *storm
	patients []*patient
	greedy   *greedy
	holders  []*holder.Holder
	gateways []*gateway
	pool     *pool
	crowd    *share.Crowd
	judge    *judge.Judge
	witness  *witness.Witness
	cutter   *witness.Cutter
	limits   []*logv1.Limit
	stats    tally.Stats

	// stalls: handing a batch to the log takes long now and then.
	stalls bool
	// busy: clients ask; faulty: faults are injected.
	busy, faulty bool
	// last is the index of the last entry that somebody applied.
	last uint64
	// heard is room for the wall clocks that a leader hears.
	heard []calendar.Reading
}

func (w *World) limit(name string) *logv1.Limit {
	i := slices.IndexFunc(w.limits, func(l *logv1.Limit) bool { return l.GetName() == name })
	return w.limits[i]
}

// newWorld builds nodes and clients, none of which has started.
func newWorld(seed uint64, kind trap.Kind) *World {
	w := &World{trap: kind, stage: stage.New(seed), judge: judge.New(), limits: rules.New()}
	w.network = w.stage.NewNetwork()
	w.witness = witness.New(w.judge, kind)
	w.cutter = witness.NewCutter(w.witness, w.stage, kind)
	w.group = &quorum.Group{
		Stage: w.stage, Network: w.network, SnapshotEvery: uint64(w.stage.Amount(20, 120)),
		Broken: func(what string) { w.judge.Complain("log", "%s", what) },
	}
	w.addNodes(seed)
	var names []string
	for i := range rules.Clients {
		name := fmt.Sprint("c", i)
		names = append(names, name)
		c := &client{world: w, name: name, host: w.stage.NewHost(name, w.clocks())}
		c.think = w.stage.Between(100*time.Millisecond, 600*time.Millisecond)
		c.fallback = newFallback(c)
		w.clients = append(w.clients, c)
	}
	if w.stage.Chance(3) || kind == trap.Laundering {
		w.recycler = &recycler{client: w.clients[rules.Clients-1]}
	}
	if w.stage.Chance(2) || kind.Stormy() {
		c := &client{world: w, name: stormName, host: w.stage.NewHost(stormName, w.clocks())}
		w.storm = &storm{client: c}
		w.addBudget()
	}
	w.addOthers()
	w.addPool(seed)
	w.addCrowd(seed)
	w.judge.Watch(w.limit(rules.Rate), "")
	for i := range 3 {
		w.judge.Watch(w.limit(rules.Pair), fmt.Sprint("k", i))
	}
	w.judge.Watch(w.limit(rules.Share), "")
	w.judge.Guarantee(w.limit(rules.Mixed), "", "live")
	for i := range 3 {
		w.judge.Guarantee(w.limit(rules.Pair), fmt.Sprint("k", i), "live")
	}
	w.judge.Fallback(w.limit(rules.Share), names, rules.SharePPM)
	return w
}

// addNode brings in a node, which may be the one whose clock is a year ahead.
func (w *World) addNode(name string, ahead bool) *node {
	clocks := w.clocks()
	if ahead && (w.stage.Chance(3) || w.trap == trap.OwnWall) {
		clocks.Skew = 365 * 24 * time.Hour
	}
	n := &node{world: w, id: len(w.nodes), host: w.stage.NewHost(name, clocks)}
	n.member = w.group.Join(n.host, n)
	w.nodes = append(w.nodes, n)
	return n
}

// addOthers brings in what only some worlds have.
func (w *World) addOthers() {
	if w.trap == trap.None && !w.stage.Chance(4) {
		w.addQueue()
	}
	if w.trap == trap.None && w.stage.Chance(2) || w.trap.Gated() {
		w.addHolders()
	}
	if w.trap == trap.None && w.stage.Chance(2) {
		for i := range 2 {
			w.gateways = append(w.gateways, &gateway{w.newcomer(fmt.Sprint("g", i))})
		}
	}
}

// addQueue brings in those who wait, and one who takes whatever is free.
func (w *World) addQueue() {
	w.greedy = &greedy{w.newcomer("greedy")}
	for i := range 1 + w.stage.Rand.IntN(3) {
		w.patients = append(w.patients, &patient{w.newcomer(fmt.Sprint("p", i))})
	}
	w.judge.Lane(w.limit(rules.Lane), "batch")
	w.judge.Guarantee(w.limit(rules.Lane), "", "live")
}

func (w *World) newcomer(name string) *client {
	return &client{world: w, name: name, host: w.stage.NewHost(name, w.clocks())}
}

func (w *World) clocks() stage.Clocks {
	return stage.Clocks{PPM: w.stage.Amount(-200, 200), Skew: w.stage.Between(-5*time.Second, 5*time.Second)}
}

// begin starts everything and configures the limits.
func (w *World) begin() {
	for _, n := range w.present {
		n.start()
	}
	if w.members != nil {
		w.members.Begin()
	}
	for _, c := range w.clients {
		c.start()
	}
	if w.recycler != nil {
		w.recycler.start()
	}
	if w.storm != nil {
		w.storm.start()
	}
	if w.greedy != nil {
		w.greedy.start()
	}
	for _, p := range w.patients {
		p.start()
	}
	for _, h := range w.holders {
		h.Start(startFor / 2)
	}
	for _, g := range w.gateways {
		g.start()
	}
	if w.pool != nil {
		w.pool.start()
	}
	if w.crowd != nil {
		w.crowd.Begin(startFor / 2)
	}
	w.configure()
}

// configure applies the limits, until that is answered; clients ask from then on.
func (w *World) configure() {
	limits := w.limits
	if w.trap == trap.Laundering {
		boundless := proto.CloneOf(w.limit(rules.Rate))
		boundless.GetDimensions()[0].MaxOpen = bucket.MaxTokens
		limits = slices.Concat([]*logv1.Limit{boundless}, limits[1:])
	}
	op := &logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{
		Limits: limits, RetryBudgets: []*logv1.RetryBudget{rules.Budget()},
	}}}
	w.clients[0].persist(op, 100, func(r reply) {
		if r.result.GetLimits() == nil {
			w.judge.Complain("model", "the limits can't be applied: %v", r.result)
		}
		w.busy = true
	})
}

// applied takes what a node has applied before all others: that is the word of the
// log.
func (w *World) applied(c *judge.Committed) {
	w.last = c.Index
	w.stats.Entries++
	w.stats.Operations += len(c.Results)
	if c.Stamp.Term != c.Term {
		w.stats.Stale++
	}
	w.stage.Trace("%v", c)
	w.stats.See(c.Entry, c.Results)
	w.judge.Commit(c)
	w.witness.See(c)
	if wall := time.Duration(w.witness.Replica.Wall()); wall > w.stage.Real()+wallMost {
		w.judge.Complain("wall", "the wall clock shows %v at %v", wall, w.stage.Real())
	}
	w.cutter.See(c)
	if w.storm != nil {
		w.counted(w.witness.Replica)
	}
}
