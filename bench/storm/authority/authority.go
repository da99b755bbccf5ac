package authority

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/check"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/cluster/entry"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/cluster/warn"
	"github.com/quorlease/quorlease/fsm"
)

const (
	// commitTime is how long an entry takes from its stamp to the answers.
	commitTime = 2 * time.Millisecond
	// term is the only one there is.
	term = 1
)

// Authority decides.
type Authority struct {
	stage *stage.Stage
	// machine is the leader's.
	machine  *fsm.Machine
	replicas []*replica
	leader   int
	// reign numbers leaders. leaderless: there is none.
	reign      int
	leaderless bool
	decoder    entry.Decoder

	// gathering are the operations of the next entry, flight those of one that is on
	// its way, if flying.
	gathering, flight []proposal
	flying            bool

	waiting *queue.Queue
	terms   map[string]*queue.Terms
	// asks are those that may not be answered yet.
	asks []*Ask
	// turn numbers the last moment for which the queue was to be looked at.
	turn uint64
	// ids numbers leases.
	ids uint64

	nodes []*node
	// history holds every entry to G1 and G2.
	history *check.Replay
	entries uint64
	// OnChange, where set, is told what a node says of clients that are about to
	// lose their retry budgets.
	OnChange func(node int, c warn.Change)
}

// proposal is an operation with who asked.
type proposal struct {
	operation *logv1.Operation
	done      func(*logv1.Result)
}

// New is a cluster that has formed, with these limits and retry budgets, and so
// many nodes.
func New(s *stage.Stage, nodes int, limits *logv1.ApplyLimits) *Authority {
	return start(s, nodes, 1, limits)
}

// NewApart is one whose nodes have replicas of their own, so that they can fail.
func NewApart(s *stage.Stage, nodes int, limits *logv1.ApplyLimits) *Authority {
	return start(s, nodes, nodes, limits)
}

func start(s *stage.Stage, nodes, replicas int, limits *logv1.ApplyLimits) *Authority {
	a := &Authority{
		stage: s, waiting: queue.New(queue.Config{}), terms: make(map[string]*queue.Terms), history: check.NewReplay(),
	}
	s.OnRest = append(s.OnRest, a.judge)
	for range replicas {
		a.replicas = append(a.replicas, &replica{machine: fsm.New()})
	}
	a.machine = a.replicas[0].machine
	a.commit([]*logv1.Operation{
		{Kind: &logv1.Operation_Form{Form: &logv1.Form{ClusterId: "00000000000000000000000000000000"}}},
		{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: limits}},
	}, a.stamp())
	for _, l := range limits.GetLimits() {
		a.terms[l.GetName()] = termsOf(l)
	}
	a.waiting.Configure(s.Real(), a.terms)
	for i := range nodes {
		a.nodes = append(a.nodes, newNode(a, i))
	}
	return a
}

// Machine is the state machine, for looking at.
func (a *Authority) Machine() *fsm.Machine { return a.machine }

// Waiting is how many wait in the queue.
func (a *Authority) Waiting() int { return a.waiting.Len() }

// NewID is a lease id that nobody has had.
func (a *Authority) NewID() []byte {
	a.ids++
	return fmt.Appendf(nil, "%016x", a.ids)
}

func (a *Authority) stamp() int64 { return int64(a.stage.Real()) }

// propose puts an operation into the next entry. done may be nil.
func (a *Authority) propose(op *logv1.Operation, done func(*logv1.Result)) {
	a.gathering = append(a.gathering, proposal{op, done})
	if !a.flying && !a.leaderless {
		a.flying = true
		// What is asked at the same moment gets into the same entry.
		a.stage.At(nil, 0, a.send)
	}
}

// send stamps what has gathered, and applies it when it has committed.
func (a *Authority) send() {
	if len(a.gathering) == 0 {
		a.flying = false
		return
	}
	batch, reign := a.gathering, a.reign
	a.flight, a.gathering = batch, nil
	operations := make([]*logv1.Operation, len(batch))
	for i := range batch {
		operations[i] = batch[i].operation
	}
	stamp := a.stamp()
	a.stage.At(nil, commitTime, func() {
		results := a.commit(operations, stamp)
		if reign != a.reign {
			return
		}
		a.flight = nil
		if len(a.gathering) > 0 {
			a.stage.At(nil, 0, a.send)
		} else {
			a.flying = false
		}
		for i := range batch {
			if batch[i].done != nil {
				batch[i].done(results[i])
			}
		}
	})
}

// commit applies an entry, as the bytes that a log would have. A bench that
// proposes what can't be read or is refused is wrong, and stops.
func (a *Authority) commit(operations []*logv1.Operation, stamp int64) []*logv1.Result {
	packed, err := entry.Encode(&logv1.Entry{Stamp: stamp, Wall: stamp, Term: term, Operations: operations})
	if err != nil {
		panic(fmt.Sprintf("encode entry: %v", err))
	}
	decoded, err := a.decoder.Decode(packed, term)
	if err != nil {
		panic(fmt.Sprintf("decode entry: %v", err))
	}
	var results []*logv1.Result
	for i, r := range a.replicas {
		if said := r.hear(packed); i == a.leader {
			results = said
		}
	}
	a.entries++
	a.history.Applied(a.entries, time.Duration(a.machine.Now()), decoded.GetOperations(), results)
	for i, r := range results {
		if refused := r.GetRefusal(); refused != nil {
			panic(fmt.Sprintf("operation %v: %s: %s", operations[i], refused.GetField(), refused.GetMessage()))
		}
		if report := decoded.GetOperations()[i].GetReportRetries(); report != nil {
			for _, n := range a.nodes {
				n.applied(report)
			}
		}
	}
	return results
}

// Seed has the history say that an acquire was granted, whatever the state machine would
// have said: so a broken one is played.
func (a *Authority) Seed(op *logv1.Acquire) {
	a.entries++
	a.history.Applied(a.entries, time.Duration(a.machine.Now()),
		[]*logv1.Operation{{Kind: &logv1.Operation_Acquire{Acquire: op}}},
		[]*logv1.Result{{Kind: &logv1.Result_Acquire{Acquire: &logv1.AcquireResult{Granted: true}}}})
}

// Broken is what judge panics with: a line for each guarantee that broke.
type Broken []string

// judge looks at everything that was granted so far. What breaks G1 or G2 stops the
// scenario: no figure of it means anything.
func (a *Authority) judge() {
	if lines := a.history.History().Problems(); len(lines) > 0 {
		panic(Broken(lines))
	}
}
