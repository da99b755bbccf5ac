// Package crash notices that the process which led has ended, and lets the others elect
// another one without waiting for Raft's timeouts.
//
// A leader that hangs, or that the network lost, says nothing, and only time tells. One
// whose process has ended is different: its kernel refuses connections to its address.
// Where the leader's address refuses, and nothing was heard of it for the shortest time
// that Raft allows, this node calls the election then instead of up to three timeouts
// later. All of Raft's rules stay as they are: a vote before the vote, a majority, the
// longest log. A refusal that was none (a proxy's, a wrong firewall's) therefore costs
// nothing as long as the leader is heard.
package crash

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorlease/quorlease/cluster/progress"
)

// Raft is what a Watch needs of *raft.Raft.
type Raft interface {
	LeaderWithID() (raft.ServerAddress, raft.ServerID)
	LastContact() time.Time
	LastIndex() uint64
	ReloadableConfig() raft.ReloadableConfig
	ReloadConfig(rc raft.ReloadableConfig) error
}

// Voter is one who votes, this node too.
type Voter struct{ ID, Address string }

// Config says whom to watch. All of it is required but the Logger. Functions are called by
// Run only, and must not block but for Dial and Last, which end with ctx.
type Config struct {
	// Raft is the library, from when Run is called.
	Raft func() Raft
	// Self is this node's Raft id, Voters are who votes.
	Self   func() string
	Voters func() []Voter
	// Dial connects to an address and hangs up. Last is the last index of a voter's log.
	Dial func(ctx context.Context, address string) error
	Last func(ctx context.Context, address string) (uint64, error)
	// Silence is for how long nothing may have been heard of the leader: the shortest
	// timeout that Raft accepts, which is the life of the leader's lease.
	Silence time.Duration
	// Logger hears of it. Nil: nobody does.
	Logger hclog.Logger
}

const (
	// apart is how long one node waits for the one before it. A node that still believes in
	// the leader refuses its vote, so whoever asks first is refused; the last is not.
	apart = 40 * time.Millisecond
	// lookMax bounds the last look at the leader, and asking the others for the length of
	// their logs.
	lookMax = 60 * time.Millisecond
	// hasteMax is for how long the timeouts are short, at most.
	hasteMax = 2 * time.Second
	// lookEvery is how often it is looked whether somebody leads.
	lookEvery = 10 * time.Millisecond
)

// Watch waits for refusals. It is safe for concurrent use.
type Watch struct {
	config  Config
	refused chan string
}

// New returns a watch. Nothing happens until Run.
func New(c Config) *Watch {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return &Watch{config: c, refused: make(chan string, 8)}
}

// Dialled hears what became of connecting to an address. It does not block.
func (w *Watch) Dialled(address string, err error) {
	if !isRefusal(err) {
		return
	}
	select {
	case w.refused <- address:
	default:
		// More of the same: whatever was refused is refused again.
	}
}

// isRefusal says whether an address answered that nobody listens there.
func isRefusal(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// Run watches until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case address := <-w.refused:
			if leads, id := w.config.Raft().LeaderWithID(); id != "" && leads == raft.ServerAddress(address) {
				w.vigil(ctx, id, address)
			}
		}
	}
}

// vigil waits until a leader whose address refuses has been silent for long enough, and
// then for another one.
func (w *Watch) vigil(ctx context.Context, id raft.ServerID, address string) {
	if !w.silent(ctx, id, w.config.Silence-lookMax) {
		return
	}
	place, gone := w.look(ctx, address)
	if !gone || !w.silent(ctx, id, w.config.Silence+time.Duration(place)*apart) {
		return
	}
	library, log := w.config.Raft(), w.config.Logger
	usual := library.ReloadableConfig()
	short := usual
	short.HeartbeatTimeout, short.ElectionTimeout = w.config.Silence, w.config.Silence
	// A follower whose timeout becomes shorter looks at once whether it has passed.
	if err := library.ReloadConfig(short); err != nil {
		log.Warn("the leader's process has ended; no election is called early", "leader", id, "err", err)
		return
	}
	log.Info("the leader's process has ended; an election is called early", "leader", id)
	w.succeeded(ctx, id)
	if err := library.ReloadConfig(usual); err != nil {
		log.Warn("Raft's timeouts stay short", "err", err)
	}
}

// silent waits until nothing was heard of the leader for a time. It is false where that
// can't be, because something was, or another one leads.
func (w *Watch) silent(ctx context.Context, id raft.ServerID, length time.Duration) bool {
	heard := w.config.Raft().LastContact()
	if !progress.Pause(ctx, time.Until(heard.Add(length))) {
		return false
	}
	_, now := w.config.Raft().LeaderWithID()
	return now == id && w.config.Raft().LastContact().Equal(heard)
}

// look asks for this node's place, and whether the leader's address still refuses.
func (w *Watch) look(ctx context.Context, address string) (place int, gone bool) {
	ctx, cancel := context.WithTimeout(ctx, lookMax)
	defer cancel()
	if !isRefusal(w.config.Dial(ctx, address)) {
		return 0, false
	}
	return w.place(ctx), true
}

// place is how many voters that answer have a shorter log than this node, or one as long
// and a smaller id.
func (w *Watch) place(ctx context.Context) int {
	self, last := w.config.Self(), w.config.Raft().LastIndex()
	var before atomic.Int64
	var asking sync.WaitGroup
	for _, v := range w.config.Voters() {
		if v.ID == self {
			continue
		}
		asking.Go(func() {
			other, err := w.config.Last(ctx, v.Address)
			if err == nil && (other < last || other == last && v.ID < self) {
				before.Add(1)
			}
		})
	}
	asking.Wait()
	return int(before.Load())
}

// succeeded waits until another node leads, or this has lasted long enough.
func (w *Watch) succeeded(ctx context.Context, id raft.ServerID) {
	for until := time.Now().Add(hasteMax); time.Now().Before(until); {
		if !progress.Pause(ctx, lookEvery) {
			return
		}
		if _, now := w.config.Raft().LeaderWithID(); now != "" && now != id {
			return
		}
	}
}
