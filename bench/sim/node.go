package sim

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/escrow"
	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/quorum"
	"github.com/quorlease/quorlease/bench/sim/replica"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/bench/sim/trap"
	"github.com/quorlease/quorlease/cluster/calendar"
	"github.com/quorlease/quorlease/cluster/clock"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/waiting"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

const (
	// tickEvery is how long a leader stamps nothing before it proposes a tick.
	tickEvery = time.Second
	// lookEvery is how often it looks whether that is so.
	lookEvery = 100 * time.Millisecond
	// electionMost is how long a node without a leader takes it for an election.
	electionMost = 3 * time.Second
	// batchMost bounds the operations of an entry, small enough to make several.
	batchMost = 32
)

// node is one node of the authority: the real state machine and the real clock,
// around them a small version of what package cluster does with them.
type node struct {
	world  *World
	id     int
	host   *stage.Host
	member *quorum.Member

	replica *replica.Replica
	clock   *clock.Clock
	budgets *budgets
	grants  *escrow.Desk
	// granting: it looks at a call, and before are what goes on before that.
	granting bool
	before   []*call
	life     int
	// serving is the term in which it leads, its barrier applied; 0: it doesn't.
	serving uint64
	// door and room are the real ones; queue is what is proposed next.
	door  *door.Door
	room  *waiting.Desk
	queue []*door.Item
	// inside are calls that may wait here, sent those that went on to a leader.
	inside   map[*call]*admitted
	sent     map[*call]*forwarded
	came     map[*call]bool
	turn     int
	revision uint64
	// flight is the batch that is being proposed: one at a time.
	flight *flight
	// hang is how long the next batch takes to be handed over.
	hang time.Duration
	// stamped is when the last batch was stamped, on the own clock.
	stamped time.Duration
	// led is when it last knew of a leader.
	led time.Duration
	// began is the index of the snapshot that it began with.
	began uint64
	// anchored is when the clock was last anchored, in real time.
	anchored time.Duration
	// lastWall is the wall clock in the last entry (T1), memory the tracked
	// leases granted by this process (T22).
	lastWall time.Duration
	memory   map[string]*logv1.AcquireResult
}

// call is one operation on its way.
type call struct {
	op *logv1.Operation
	// answer is called on the caller's host. It is nil where nobody waits.
	answer func(reply)
	from   *stage.Host
	hops   int
	// maxWait is how long it may wait in a leader's queue.
	maxWait time.Duration
	// attempt is how many retries of the work there were before.
	attempt uint32
	// once: it goes over a stream, on which nothing comes twice.
	once bool
}

// reply is what a node says.
type reply struct {
	result *logv1.Result
	// until is when a granted lease ends, in authority time.
	until int64
	// unsure: it was proposed, and nobody knows; or nothing came in time.
	unsure bool
	// noQuorum: a majority can't be reached. Without any of these there is no
	// leader, and the operation was not proposed.
	noQuorum bool
}

// flight is a stamped batch.
type flight struct {
	items   []*door.Item
	payload []byte
	stamp   *judge.Stamp
	// note goes with its entry, which a leader that votes alone applies at once.
	note *note
}

func (n *node) elapsed() time.Duration {
	if n.world.trap == trap.NodeSleeps {
		return n.host.Mono()
	}
	return n.host.Boot()
}

// start begins a process.
func (n *node) start() {
	n.life++
	n.serving, n.queue, n.flight, n.lastWall = 0, nil, nil, 0
	n.led, n.hang = n.host.Boot(), 0
	n.newRoom()
	n.memory = make(map[string]*logv1.AcquireResult)
	n.clock = clock.New(n.elapsed)
	n.budgets = newBudgets(n)
	n.grants = n.newGrants()
	n.member.Start()
	if n.world.members != nil {
		n.world.members.Started(n.id)
	}
	n.world.stage.At(n.host, lookEvery, n.look)
}

// look proposes a tick when nothing was stamped for a second (T2).
func (n *node) look() {
	n.world.stage.At(n.host, lookEvery, n.look)
	if n.member.LeaderID() >= 0 {
		n.led = n.host.Boot()
	}
	if n.serving == 0 || n.flight != nil {
		return
	}
	if n.host.Boot()-n.stamped >= tickEvery && n.world.trap != trap.NoTicks {
		n.propose(nil)
	}
	n.world.judge.Idle(n.host.Name, n.host.Boot()-n.stamped)
}

// take is what arrives in one message from a client or from another node.
func (n *node) take(calls ...*call) {
	var on []*call
	for _, c := range calls {
		if n.intercept(c) || n.again(c) {
			continue
		}
		if c = n.budgets.decide(c); c != nil {
			on = append(on, n.granted(c)...)
		}
	}
	n.route(on...)
}

func (n *node) reply(c *call, r reply) {
	if c.answer != nil {
		n.world.network.Send(n.host, c.from, func() { c.answer(r) })
	}
}

func (n *node) pump() {
	if n.serving == 0 || n.flight != nil || len(n.queue) == 0 {
		return
	}
	var items []*door.Item
	taken := n.door.Claim(n.queue, nil, func(it *door.Item) bool {
		if len(items) == batchMost {
			return false
		}
		items = append(items, it)
		return true
	})
	n.queue = n.queue[taken:]
	if items = n.grants.Without(items); len(items) > 0 {
		n.propose(items)
	} else {
		n.pump()
	}
}

// arrival is how a call comes to this node, which leads.
func (n *node) arrival(c *call) judge.Arrival {
	return judge.Arrival{Real: n.world.stage.Real(), Node: n.host.Name, Term: n.serving, MaxWait: c.maxWait}
}

// propose stamps a batch and hands it to the log; once in a while that takes
// seconds, and the batch ends up in a later term or nowhere.
func (n *node) propose(items []*door.Item) {
	f := &flight{items: items, stamp: &judge.Stamp{
		Stamp: n.estimate(), Real: n.world.stage.Real(), Term: n.member.Term(), Node: n.id, Process: n.life,
		Applied: n.replica.Index(), Restored: n.began,
	}}
	entry := &logv1.Entry{Stamp: int64(f.stamp.Stamp), Wall: n.wall(), Term: f.stamp.Term}
	for _, it := range items {
		entry.Operations = append(entry.Operations, it.Operation)
	}
	n.world.judge.Proposed(n.host.Name, n.serving, entry.GetOperations())
	payload, err := fsm.EncodeEntry(entry)
	if err != nil {
		n.world.judge.Complain("model", "encode %v: %v", entry, err)
		return
	}
	f.payload = payload
	n.flight, n.stamped = f, n.host.Boot()
	n.world.judge.Stamped(f.stamp)
	hang := n.hang
	n.hang = 0
	if n.world.stalls && n.world.stage.Chance(150) {
		hang = n.world.stage.Between(time.Second/2, 4*time.Second)
	}
	if hang > 0 {
		n.world.stats.Stalled++
		n.world.stage.Trace("%s stamps %v and hangs for %v", n.host.Name, time.Duration(f.stamp.Stamp), hang)
		n.world.stage.At(n.host, hang, func() { n.handOver(f) })
		return
	}
	n.handOver(f)
}

// wall is the median of the voters' wall clocks: nobody far off moves it (T6).
func (n *node) wall() int64 {
	if n.world.trap == trap.OwnWall || n.world.trap == trap.WallClock {
		return int64(n.host.Wall())
	}
	heard := n.world.heard[:0]
	latest, _ := n.member.Latest()
	voters := 0
	for _, s := range latest.Servers {
		if !s.Voter {
			continue
		}
		voters++
		if other := n.world.nodes[s.ID]; other.host.Runs() {
			heard = append(heard, calendar.Reading{Node: other.host.Name, Wall: int64(other.host.Wall())})
		}
	}
	n.world.heard = heard
	wall, ok := calendar.Median(heard, voters)
	if !ok {
		return 0
	}
	return wall
}

// handOver gives a batch to the log. One that hung while the leadership was lost
// and won again goes into a later term, where its stamp counts for nothing.
func (n *node) handOver(f *flight) {
	f.note = &note{stamp: f.stamp}
	if _, ok := n.member.Propose(f.payload, f.note); !ok && n.flight == f {
		n.flight = nil
		n.fail(f.items, outcome.ErrNotLeader)
	}
}

func (n *node) fail(items []*door.Item, err error) {
	for _, it := range items {
		n.door.Answer(it, nil, err)
	}
}

// Apply implements quorum.Machine.
func (n *node) Apply(index uint64, e *quorum.Entry) {
	entry, err := n.decoded(e)
	if err != nil {
		n.world.judge.Complain("model", "decode entry %d: %v", index, err)
		return
	}
	results := n.replica.Take(index, entry)
	if n.world.trap == trap.Diverging && n.id == 1 && index%50 == 0 {
		n.replica.Take(index, &logv1.Entry{Stamp: int64(n.replica.Now()) + 1})
	}
	n.lastWall = time.Duration(entry.GetWall())
	n.world.judge.Hash(n.host.Name, index, n.replica.Hash())
	if index > n.world.last {
		n.world.applied(&judge.Committed{
			Index: index, Term: e.Term, Stamp: e.Note.(*note).stamp, Now: n.replica.Now(), Entry: entry, Results: results,
			Real: n.world.stage.Real(),
		})
	}
	n.anchor(bucket.Instant(entry.GetStamp()))
	n.budgets.applied(entry)
	n.grants.Applied(entry, results)
	n.seen(results)
	if n.flight == nil || n.flight.note != e.Note {
		n.serve()
		return
	}
	f := n.flight
	n.flight = nil
	at := judge.Moment{Real: n.world.stage.Real(), Now: int64(n.replica.Now()), Node: n.host.Name, Term: n.serving}
	for i, op := range entry.GetOperations() {
		n.world.judge.Denied(at, op, results[i])
	}
	n.door.AnswerAll(f.items, results)
	n.pump()
	n.serve()
}

// Snapshot implements quorum.Machine.
func (n *node) Snapshot() any {
	n.world.stats.Snapshots++
	return n.replica.Freeze()
}

// Restore implements quorum.Machine.
func (n *node) Restore(snapshot any) {
	if snapshot == nil {
		n.replica, n.began = replica.New(n.world.trap), 0
		n.anchored = n.world.stage.Real()
		return
	}
	r, err := replica.Thaw(n.world.trap, snapshot.(*replica.Frozen))
	if err != nil {
		n.world.judge.Complain("model", "%s: %v", n.host.Name, err)
		return
	}
	n.replica = r
	n.began = r.Index()
	n.budgets.desk.Restored(r.Machine)
	n.grants.Restored()
	n.world.judge.Hash(n.host.Name, r.Index(), r.Hash())
	if n.world.trap == trap.SnapshotWithoutTime {
		n.anchor(0)
		return
	}
	n.anchor(r.Now())
}

// Become implements quorum.Machine.
func (n *node) Become(role quorum.Role, term uint64) {
	n.world.stage.Trace("%s is %s in term %d, applied %d", n.host.Name, roleNames[role], term, n.member.Applied())
	switch {
	case role == quorum.Follower:
		n.clock.Follow()
		n.serving = 0
		queue, f := n.queue, n.flight
		n.queue, n.flight = nil, nil
		n.room.Drop()
		n.fail(queue, outcome.ErrNotLeader)
		if f != nil {
			n.fail(f.items, outcome.ErrUnknown)
		}
	case role == quorum.Leader || n.world.trap == trap.BeforeBarrier:
		n.lead(term)
	}
}

var roleNames = [...]string{"follower", "elected", "leader"}

// lead begins to serve.
func (n *node) lead(term uint64) {
	if n.serving == term {
		return
	}
	if n.world.trap == trap.AppliedStamp {
		n.clock.SetApplied(n.replica.Now())
	}
	n.clock.Lead()
	n.world.judge.Gained(n.host.Name, n.clock.Estimate(), n.replica.Now(), n.world.stage.Real()-n.anchored)
	n.serving, n.stamped = term, n.host.Boot()
	n.seen(nil)
	n.room.Lead()
	n.propose(nil)
}
