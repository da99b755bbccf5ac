package retries

import (
	"container/list"
	"sync"
	"time"

	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/retry"
	"github.com/quorlease/quorlease/fsm/tally"
)

const (
	// PartRetryAfter is what a retry is told to wait when only the node's part
	// is used up: by then the report has usually been applied.
	PartRetryAfter = 200 * time.Millisecond
	// reportPause is how often one client may make a node report out of turn.
	reportPause = 100 * time.Millisecond
	// crossingsMost is how many reports in a row a node makes out of turn because of
	// lines that clients cross, and crossingPause how long it takes to have one back.
	crossingsMost = 20
	crossingPause = 50 * time.Millisecond

	clientsMaxDefault = 100_000
	slotsMaxDefault   = 500_000
)

// Verdict is the answer to one request.
type Verdict int

// The verdicts.
const (
	// Admit lets the request through.
	Admit Verdict = iota
	// Attempts refuses it for good: its own attempt is too high.
	Attempts
	// Budget refuses it because the client has too many retries.
	Budget
	// PartUsedUp refuses this retry alone: the node has to report first.
	PartUsedUp
)

// String is the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case Admit:
		return "admit"
	case Attempts:
		return "attempts"
	case Budget:
		return "budget"
	case PartUsedUp:
		return "part used up"
	}
	return "unknown"
}

// Config configures a Counter.
type Config struct {
	// Node is this node's Raft id, Boot a random number drawn when the process
	// started. Reports are kept apart by both.
	Node string
	Boot uint64
	// ClientsMax bounds the clients with counts that are not applied. Default
	// 100,000. Beyond it a new client's first attempts are admitted uncounted
	// and its retries refused.
	ClientsMax int
	// SlotsMax bounds their slices, over all clients. Default 500,000.
	SlotsMax int
}

// Replica is what a node has applied of the reports of all nodes.
type Replica interface {
	Counted(from tally.Process, client string, slice int64) tally.Count
}

// Request is one request to decide on.
type Request struct {
	Client string
	// Attempt is the retries already made for this piece of work, 0 first.
	Attempt uint32
	Rule    retry.Rule
	// Lenient: the request is admitted whatever the rule says of it, and the verdict
	// is only what it would have been.
	Lenient bool
	// Known: the replica has something of the client. Denials are counted of such
	// clients only: a refused stranger costs nothing (S1-52).
	Known bool
	// Total and Retries are what the replica counts for the client in the
	// window.
	Total, Retries int64
	// Nodes is the number of serving nodes in the applied configuration,
	// learners too. Zero until this node's own joining is applied: no retries.
	Nodes int
	// WarnFraction is the line above which the client is warned of, in hundredths of
	// a percent. 0: there is none.
	WarnFraction int64
	// Replica says what it has applied of this node's reports, so that a slice that
	// was forgotten goes on where it stopped. Nil: nothing.
	Replica Replica
}

// Decision is the verdict and what goes with it.
type Decision struct {
	Verdict Verdict
	// RetryAfter is zero where the request is admitted, or never will be.
	RetryAfter time.Duration
}

// Hold is the room of one admitted request until Finish. The zero Hold holds
// nothing.
type Hold struct {
	client *client
	now    bucket.Instant
	at     time.Duration
	retry  bool
	known  bool
	// crosses: with it the client may cross its line.
	crosses bool
}

// Counter counts for one node. It is safe for concurrent use. at is the node's
// own steady clock throughout, and never goes back.
type Counter struct {
	config Config
	due    chan struct{}

	mu struct {
		sync.Mutex
		clients map[string]*client
		// unreported are the *client whose counts the replica does not hold all.
		unreported list.List
		// room counts slots and holds, which may become slots.
		room   int
		faults faults
		// nodes is the number of serving nodes that was heard of last.
		nodes int
		// crossings is when all reports out of turn because of lines are to be had
		// again.
		crossings time.Duration
	}
}

// client is what is kept of one client while anything of it is not applied or
// not decided. It is guarded by Counter.mu.
type client struct {
	name   string
	window time.Duration
	// slots are in the order of their beginning on the steady clock.
	slots []slot
	// kept is what the replica does not hold.
	kept tally.Count
	// holds are requests admitted and not finished; holdRetries of them are
	// retries.
	holds, holdRetries int64
	// listed is the client's place in Counter.unreported.
	listed *list.Element
	// reported is when it was last in a report, fresh: not since its last count.
	reported time.Duration
	fresh    bool
}

// slot is one slice of the window, counted since the process started.
type slot struct {
	slice int64
	began time.Duration
	own   tally.Count
	// applied is what the replica has applied of own.
	applied tally.Count
}

func (s *slot) unreported() tally.Count { return s.own.Minus(s.applied) }

// New returns an empty counter.
func New(c Config) *Counter {
	if c.ClientsMax <= 0 {
		c.ClientsMax = clientsMaxDefault
	}
	if c.SlotsMax <= 0 {
		c.SlotsMax = slotsMaxDefault
	}
	n := &Counter{config: c, due: make(chan struct{}, 1)}
	n.mu.clients = make(map[string]*client)
	n.mu.faults = make(faults)
	return n
}

// Due is signalled when a report should not wait for its turn.
func (n *Counter) Due() <-chan struct{} { return n.due }

// Decide says whether a request passes. An admitted one is held, and counts
// against the part, until Finish, which must follow. now is the authority
// time that the slices are numbered by.
//
// The replica's counts and this node's must be of one moment: call it under
// the lock that also covers applying an entry and Applied.
func (n *Counter) Decide(at time.Duration, now bucket.Instant, r Request) (Decision, Hold) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.mu.clients[r.Client]
	if c != nil {
		if c.window != r.Rule.Window {
			n.rewindowLocked(c, Hold{now: now, at: at}, r)
		}
		n.slideLocked(at, c)
	}
	room := n.mu.room < n.config.SlotsMax && (c != nil || len(n.mu.clients) < n.config.ClientsMax)
	d := n.judgeLocked(at, c, r, room)
	if d.Verdict == PartUsedUp && r.Lenient {
		d = Decision{}
	}
	if d.Verdict != Admit && !r.Lenient || !room {
		if c != nil {
			n.forgetLocked(c)
		}
		return d, Hold{}
	}
	c = n.keepLocked(c, r.Client, r.Rule.Window)
	h := Hold{client: c, now: now, at: at, retry: r.Attempt > 0, known: r.Known}
	n.openLocked(c, h, r.Replica)
	n.holdLocked(h, 1)
	n.mu.nodes = r.Nodes
	h.crosses = n.crossesLocked(c, r)
	return d, h
}

// holdLocked counts a hold that begins (by 1) or ends (by -1).
func (n *Counter) holdLocked(h Hold, by int) {
	n.mu.room += by
	h.client.holds += int64(by)
	if h.retry {
		h.client.holdRetries += int64(by)
	}
}

// judgeLocked asks the rule and looks at the part. c is nil where nothing is
// kept of the client; a retry that there is no room to count is refused.
func (n *Counter) judgeLocked(at time.Duration, c *client, r Request, room bool) Decision {
	var own, held, heldRetries, ownRetries int64
	if c != nil {
		own, ownRetries, held, heldRetries = c.kept.Total, c.kept.Retries, c.holds, c.holdRetries
	}
	// A held request may yet come to nothing, and more requests can make the
	// rule stricter (from min_requests on) as well as milder, so it has to admit
	// both with the held first attempts and without.
	retries := r.Retries + ownRetries + heldRetries
	for _, total := range [...]int64{r.Total + own + heldRetries, r.Total + own + held} {
		switch r.Rule.Decide(total, retries, r.Attempt) {
		case retry.Admit:
		case retry.Attempts:
			return Decision{Verdict: Attempts}
		case retry.Budget:
			n.hurryLocked(at, c)
			return Decision{Verdict: Budget, RetryAfter: r.Rule.RetryAfter}
		}
	}
	if r.Attempt == 0 {
		return Decision{}
	}
	part := int64(0)
	if r.Nodes > 0 && room {
		part = retry.Part(r.Rule.Headroom(r.Total, r.Retries), r.Nodes)
	}
	if ownRetries+heldRetries < part {
		return Decision{}
	}
	n.hurryLocked(at, c)
	return Decision{Verdict: PartUsedUp, RetryAfter: PartRetryAfter}
}

// hurryLocked asks for a report, unless one with the client's counts has just
// been made.
func (n *Counter) hurryLocked(at time.Duration, c *client) {
	if c == nil || c.listed == nil || !c.fresh && at-c.reported < reportPause {
		return
	}
	select {
	case n.due <- struct{}{}:
	default:
	}
}

// Finish ends a hold. recorded: the request was admitted in the end, or nobody
// knows; otherwise (a denial, an error before proposing) it does not count as
// one. denied is what is counted of a denial. It must be called once for each
// hold.
func (n *Counter) Finish(at time.Duration, h Hold, recorded bool, denied tally.Count) {
	c := h.client
	if c == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.holdLocked(h, -1)
	var count tally.Count
	if h.known || c.kept != (tally.Count{}) {
		count = denied
	}
	if recorded {
		count.Total++
		if h.retry {
			count.Retries++
		}
	}
	if count != (tally.Count{}) && at-h.at <= c.window {
		n.recordLocked(c, n.openLocked(c, h, nil), count)
	}
	if recorded && h.crosses {
		n.crossingLocked(at)
	}
	n.forgetLocked(c)
}

// Note counts what is not decided here: r names the client, the window and the
// replica. Beyond the bounds nothing is counted, nor are refusals alone of a
// client of which nothing is known. It wants the lock that Decide wants.
func (n *Counter) Note(at time.Duration, now bucket.Instant, r Request, a Tried) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.faults.add(at, r.Client, r.Rule.Window, a.Fault)
	c := n.mu.clients[r.Client]
	stranger := c == nil && !r.Known && a.Count.Total == 0 && a.Count.Throttled == 0
	if stranger || n.mu.room >= n.config.SlotsMax || c == nil && len(n.mu.clients) >= n.config.ClientsMax {
		return
	}
	if c != nil {
		if c.window != r.Rule.Window {
			n.rewindowLocked(c, Hold{now: now, at: at}, r)
		}
		n.slideLocked(at, c)
	}
	c = n.keepLocked(c, r.Client, r.Rule.Window)
	n.recordLocked(c, n.openLocked(c, Hold{now: now, at: at}, r.Replica), a.Count)
	if n.crossesLocked(c, r) {
		n.crossingLocked(at)
	}
	n.forgetLocked(c)
}

// recordLocked counts in a slot. Sums stay where reports can hold them.
func (n *Counter) recordLocked(c *client, s *slot, count tally.Count) {
	most := tally.Count{
		Total: tally.MaxCount, Retries: tally.MaxCount, Throttled: tally.MaxCount,
		Denied: tally.MaxCount, Early: tally.MaxCount,
	}
	before := s.own
	s.own = s.own.Plus(count).Min(most)
	c.kept = c.kept.Plus(s.own.Minus(before))
	c.fresh = true
	if c.listed == nil && c.kept != (tally.Count{}) {
		c.listed = n.mu.unreported.PushBack(c)
	}
}

// keepLocked is the client, a new one where c is nil.
func (n *Counter) keepLocked(c *client, name string, window time.Duration) *client {
	if c == nil {
		c = &client{name: name, window: window}
		n.mu.clients[name] = c
	}
	return c
}
