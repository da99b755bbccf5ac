package probe

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
)

// Peer is a node to ask.
type Peer struct {
	// RaftID is empty where only the address is known.
	RaftID string
	Addr   string
	Voter  bool
}

// Leader is what Raft knows of the leader.
type Leader struct {
	// RaftID is empty where there is none.
	RaftID string
	// Age is how long ago Raft last had proof of it: 0 at the leader itself.
	Age time.Duration
}

// Config configures a Prober. The functions are called often, from several
// goroutines, and must not block.
type Config struct {
	// Self is this node as it introduces itself. Required.
	Self func() *peerv1.PeerInfo
	// Peers are the members of Raft's configuration, this node included or not
	// (its Voter tells whether it votes), or the addresses to join. Required.
	Peers func() []Peer
	// Leader is what Raft knows. Required.
	Leader func() Leader
	// Ask asks one peer. It must return when ctx ends. Required.
	Ask func(ctx context.Context, addr string, from *peerv1.PeerInfo) (*peerv1.PeerInfo, error)
	// OnChange hears of incidents, one at a time, in order. It must not wait
	// for Close. May be nil.
	OnChange func(Change)
	// Interval is how often to ask. Default 250 ms.
	Interval time.Duration
	// Window is how long an answer counts. Default three intervals, so that a
	// loss is seen within a second.
	Window time.Duration
	// Timeout bounds one question. Default four intervals.
	Timeout time.Duration
	// Patience is how long an election may last before it counts as a lost
	// quorum. Default 3 s.
	Patience time.Duration
	// Now is a monotonic clock. Default: time since the start.
	Now func() time.Duration
	// Logger hears what OnChange hears. Nil: nobody does.
	Logger hclog.Logger
}

// ChangeKind says what happened.
type ChangeKind int

// The kinds of change.
const (
	QuorumLost ChangeKind = iota + 1
	QuorumRestored
	// FollowerLagging: a member answers, but has been 250 entries or more behind
	// for more than 10 s. Only the leader says so.
	FollowerLagging
	// FollowerCaughtUp ends FollowerLagging: the member caught up or was removed,
	// or this node leads no more and another one watches.
	FollowerCaughtUp
)

// Change is one incident's beginning or end.
type Change struct {
	Kind ChangeKind
	View View
	// RaftID and Lag (entries) of a follower that lags.
	RaftID string
	Lag    uint64
}

// View is how the quorum stands.
type View struct {
	State State
	// Lost: QuorumLost was reported and QuorumRestored was not.
	Lost bool
	// Reached are the Raft ids of the voters that this node reaches, itself
	// included.
	Reached []string
	// Voters is how many there are.
	Voters int
}

// Member is what is known of a peer.
type Member struct {
	// Said is what it said of itself last.
	Said *peerv1.PeerInfo
	// Answers: it answered within the window.
	Answers bool
	// Lag is how many entries it was behind the leader at its last answer.
	Lag uint64
	// Steady is for how long it has answered, and been fewer than 250 entries behind,
	// without a break: 0 where it does not now.
	Steady time.Duration
}

// membersMost bounds what is kept: members come and go.
const membersMost = 64

// member is what is kept of a peer. The fields are guarded by Prober.mu.
type member struct {
	info *peerv1.PeerInfo
	// heard is when it spoke last, in an answer or by asking; answered counts
	// only once hasAnswered.
	heard, answered time.Duration
	hasAnswered     bool
	lag             uint64
	behind          lagging
	// steady: at every answer since steadySince it was near the leader, and none was
	// missing.
	steady      bool
	steadySince time.Duration
}

// Prober asks and keeps the answers. It is safe for concurrent use.
type Prober struct {
	config Config
	cancel context.CancelFunc
	once   sync.Once
	start  func()
	wake   chan struct{}
	loop   sync.WaitGroup
	asking sync.WaitGroup

	mu struct {
		sync.Mutex
		view    View
		members map[string]*member
		// underWay counts the questions by address.
		underWay   map[string]int
		incident   incident
		majorityAt time.Duration
		// heldUntil: until then the view gets no worse, because this node had been
		// stopped and its answers are old for that reason.
		heldUntil time.Duration
	}
}

// New returns a prober that does not ask yet: its View is that nothing is
// known. Start it once what its functions need is there.
func New(c Config) *Prober {
	if c.Interval <= 0 {
		c.Interval = 250 * time.Millisecond
	}
	if c.Window <= 0 {
		c.Window = 3 * c.Interval
	}
	if c.Timeout <= 0 {
		c.Timeout = 4 * c.Interval
	}
	if c.Patience <= 0 {
		c.Patience = 3 * time.Second
	}
	if c.Now == nil {
		start := time.Now()
		c.Now = func() time.Duration { return time.Since(start) }
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Prober{config: c, cancel: cancel, wake: make(chan struct{}, 1)}
	p.mu.members = make(map[string]*member)
	p.mu.underWay = make(map[string]int)
	p.start = func() { p.loop.Go(func() { p.run(ctx) }) }
	return p
}

// Start begins to ask, once. Close ends it.
func (p *Prober) Start() { p.once.Do(p.start) }

// Close stops asking and waits for the questions under way, which end at once
// if Ask heeds its context. It is idempotent; Start after it does nothing.
func (p *Prober) Close() {
	p.once.Do(func() {})
	p.cancel()
	p.loop.Wait()
	p.asking.Wait()
}

// View is how the quorum stood at the last look, at most half an interval ago.
func (p *Prober) View() View {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.view
}

// Member is what is known of a peer. ok is false where nothing is.
func (p *Prober) Member(raftID string) (m Member, ok bool) {
	now := p.config.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.mu.members[raftID]
	if known == nil {
		return Member{}, false
	}
	m = Member{Said: known.info, Answers: p.answersLocked(now, known), Lag: known.lag}
	if m.Answers && known.steady {
		m.Steady = now - known.steadySince
	}
	return m, true
}

// Wall is what a peer's wall clock shows now, in Unix nanoseconds, by what it said
// last, and how long ago that was. ok is false where it has said nothing.
func (p *Prober) Wall(raftID string) (wall int64, age time.Duration, ok bool) {
	now := p.config.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.mu.members[raftID]
	if m == nil || m.info.GetWall() == 0 {
		return 0, 0, false
	}
	age = now - m.heard
	return m.info.GetWall() + int64(age), age, true
}

// IsHealthy reports whether a member answers and lags fewer than 250 entries.
// This node itself answers.
func (p *Prober) IsHealthy(raftID string) bool {
	lag, ok := p.Lag(raftID)
	return ok && lag < lagMost
}

// Lag is how many entries a member is behind the leader, as far as this node knows. ok
// is false where the member does not answer; this node itself does.
func (p *Prober) Lag(raftID string) (entries uint64, ok bool) {
	self := p.config.Self()
	if raftID == self.GetRaftId() {
		return lagOf(p.leaderLast(self), self.GetAppliedIndex()), true
	}
	m, ok := p.Member(raftID)
	return m.Lag, ok && m.Answers
}

// Heard takes what a peer says of itself when it asks this node. It proves
// nothing of whether this node reaches the peer.
func (p *Prober) Heard(info *peerv1.PeerInfo) {
	now := p.config.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.memberLocked(now, info.GetRaftId()); m != nil {
		m.info, m.heard = info, now
	}
}

// memberLocked finds or makes the place of a peer; nil where there is no room
// or no id.
func (p *Prober) memberLocked(now time.Duration, raftID string) *member {
	if raftID == "" {
		return nil
	}
	if m := p.mu.members[raftID]; m != nil {
		return m
	}
	if len(p.mu.members) >= membersMost {
		for id, m := range p.mu.members {
			if now-m.heard > time.Minute && !m.behind.reported {
				delete(p.mu.members, id)
			}
		}
		if len(p.mu.members) >= membersMost {
			return nil
		}
	}
	m := &member{}
	p.mu.members[raftID] = m
	return m
}

func (p *Prober) answersLocked(now time.Duration, m *member) bool {
	return m.hasAnswered && now-m.answered <= p.config.Window
}

// leaderLast is the last index of the leader as far as this node knows. Zero:
// it doesn't.
func (p *Prober) leaderLast(self *peerv1.PeerInfo) uint64 {
	leader := p.config.Leader().RaftID
	if leader == "" {
		return 0
	}
	if leader == self.GetRaftId() {
		return self.GetLastIndex()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.mu.members[leader]; m != nil {
		return m.info.GetLastIndex()
	}
	return 0
}

func lagOf(last, applied uint64) uint64 {
	if applied >= last {
		return 0
	}
	return last - applied
}
