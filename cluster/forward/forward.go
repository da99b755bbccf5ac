// Package forward carries operations from a follower to the leader and the
// results back, over one batched stream.
//
// When the stream breaks, what was sent has an unknown outcome and what was not
// goes to the next leader. Nothing that was sent is ever sent again from here,
// because only the caller knows whether repeating is harmless (G4): but for
// tracked acquires that wait, whose lease id makes it so, and whose callers would
// lose their wait with every leader (T25).
package forward

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// Bounds of one message between nodes.
const (
	itemsMax = batch.MaxOperations
	bytesMax = 256 << 10
)

// Config says how a Forwarder reaches the leader. All of it is required. The
// functions must not block.
type Config struct {
	Door *door.Door
	// Leader is the Raft id and the peer address of the leader that Raft knows,
	// empty where it knows none but this node.
	Leader func() (id, address string)
	// Client is the client for a peer address.
	Client func(address string) (peerv1.PeerClient, error)
	// Reroute takes back an item that certainly was not proposed.
	Reroute func(*door.Item)
	// QueueMax bounds what waits for the stream, answered items included.
	QueueMax int
}

// Forwarder hands a follower's operations to the leader, over one stream to one
// leader at a time. Safe for concurrent use.
type Forwarder struct {
	config Config

	mu struct {
		sync.Mutex
		current *link
		closed  bool
	}
	links sync.WaitGroup
}

// New returns a forwarder. Close ends it.
func New(c Config) *Forwarder { return &Forwarder{config: c} }

// Enqueue takes an item for the leader that Raft knows, and returns false where
// it knows none but this node.
func (f *Forwarder) Enqueue(it *door.Item) bool {
	f.mu.Lock()
	// Asked under the lock: who has heard of the old leader must not give up the stream to
	// the new one.
	id, address := f.config.Leader()
	if id == "" || f.mu.closed {
		f.mu.Unlock()
		return false
	}
	old, l := f.mu.current, f.mu.current
	if l == nil || l.leader != id || l.isOver() {
		l = f.openLocked(id, address)
	}
	f.mu.Unlock()
	if old != nil && old != l {
		old.cancel()
	}
	return l.enqueue(it)
}

func (f *Forwarder) openLocked(id, address string) *link {
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{
		config: &f.config, leader: id, address: address,
		cancel: cancel, wake: make(chan struct{}, 1),
	}
	l.mu.sent = make(map[uint64]*door.Item)
	f.mu.current = l
	f.links.Go(func() { l.run(ctx) })
	return l
}

// LeaderChanged gives up the stream to a leader that another one replaced: what
// was sent there may never be answered.
func (f *Forwarder) LeaderChanged(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.mu.current; l != nil && id != "" && l.leader != id {
		l.cancel()
		f.mu.current = nil
	}
}

// Close ends the stream and waits until its items are answered.
func (f *Forwarder) Close() {
	f.mu.Lock()
	f.mu.closed = true
	if f.mu.current != nil {
		f.mu.current.cancel()
	}
	f.mu.Unlock()
	f.links.Wait()
}

// link is one stream to one leader.
type link struct {
	config  *Config
	leader  string
	address string
	// cancel gives the stream up.
	cancel context.CancelFunc
	wake   chan struct{}

	mu struct {
		sync.Mutex
		queue []*door.Item
		// sent is what the leader has not answered, by number.
		sent map[uint64]*door.Item
		seq  uint64
		// gone lists what nobody waits for any more, for the leader to know.
		gone []uint64
		over bool
	}
}

func (l *link) enqueue(it *door.Item) bool {
	l.mu.Lock()
	if l.mu.over {
		l.mu.Unlock()
		return false
	}
	l.mu.queue = append(l.mu.queue, it)
	if len(l.mu.queue) > l.config.QueueMax {
		l.mu.queue = l.config.Door.StillWaiting(l.mu.queue)
	}
	l.mu.Unlock()
	l.nudge()
	return true
}

// isOver reports whether the stream has ended.
func (l *link) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.over
}

// Withdraw tells the leader that nobody waits for it.
func (l *link) Withdraw(it *door.Item) {
	l.mu.Lock()
	if l.mu.sent[it.Seq] == it {
		delete(l.mu.sent, it.Seq)
		l.mu.gone = append(l.mu.gone, it.Seq)
	}
	l.mu.Unlock()
	l.nudge()
}

func (l *link) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run sends until the stream breaks or the link is given up.
func (l *link) run(ctx context.Context) {
	defer l.finish()
	defer l.cancel()
	client, err := l.config.Client(l.address)
	if err != nil {
		return
	}
	stream, err := client.Forward(ctx)
	if err != nil {
		return
	}
	// The leader says at once that it is there. Until then gRPC might make the
	// stream anew by itself, with a lock held over it.
	if _, err := stream.Header(); err != nil {
		return
	}
	var receiver sync.WaitGroup
	receiver.Go(func() {
		defer l.cancel()
		l.receive(stream)
	})
	defer receiver.Wait()
	defer l.cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for request := l.drain(); len(request.Items) > 0; request = l.drain() {
			if stream.Send(request) != nil {
				return
			}
		}
	}
}

// drain puts everything that waits into one message, as far as it fits.
func (l *link) drain() *peerv1.ForwardRequest {
	now, size := time.Now(), 0
	request := &peerv1.ForwardRequest{}
	l.mu.Lock()
	defer l.mu.Unlock()
	gone := min(len(l.mu.gone), itemsMax)
	for _, seq := range l.mu.gone[:gone] {
		request.Items = append(request.Items, &peerv1.ForwardItem{Seq: seq, Cancel: true})
	}
	l.mu.gone = slices.Delete(l.mu.gone, 0, gone)
	taken := l.config.Door.Claim(l.mu.queue, l, func(it *door.Item) bool {
		if len(request.Items) > 0 && (len(request.Items) >= itemsMax || size+it.Size > bytesMax) {
			return false
		}
		size += it.Size
		l.mu.seq++
		it.Seq = l.mu.seq
		l.mu.sent[it.Seq] = it
		item := &peerv1.ForwardItem{
			Seq:       it.Seq,
			Operation: it.Operation,
			Timeout:   int64(max(time.Millisecond, it.Deadline.Sub(now))),
		}
		if it.MaxWait > 0 {
			// One that has waited long enough is told so by the leader's queue.
			item.Waited = int64(max(0, now.Sub(it.Since)))
			item.MaxWait = max(1, int64(it.MaxWait)-item.Waited)
		}
		request.Items = append(request.Items, item)
		return true
	})
	l.mu.queue = slices.Delete(l.mu.queue, 0, taken)
	return request
}

// receive hands out answers until the stream breaks.
func (l *link) receive(stream peerv1.Peer_ForwardClient) {
	for {
		response, err := stream.Recv()
		if err != nil {
			return
		}
		l.hand(response.GetAnswers())
	}
}

func (l *link) hand(answers []*peerv1.ForwardAnswer) {
	ops := make([]*door.Item, 0, len(answers))
	results := make([]*logv1.Result, 0, len(answers))
	type failed struct {
		it  *door.Item
		err error
	}
	var failures []failed
	l.mu.Lock()
	for _, a := range answers {
		it := l.mu.sent[a.GetSeq()]
		delete(l.mu.sent, a.GetSeq())
		switch {
		case it == nil:
			// It was withdrawn.
		case a.GetResult() != nil:
			ops, results = append(ops, it), append(results, a.GetResult())
		default:
			failures = append(failures, failed{it, outcome.ErrorOf(a.GetFailure())})
		}
	}
	l.mu.Unlock()
	l.config.Door.AnswerAll(ops, results)
	for _, f := range failures {
		if errors.Is(f.err, outcome.ErrNotLeader) {
			l.config.Reroute(f.it)
			continue
		}
		l.unknown(f.it, f.err)
	}
}

// unknown ends an item that may have happened, unless it waits and repeating it
// is harmless: then it goes to the next leader.
func (l *link) unknown(it *door.Item, err error) {
	if it.Repeatable() && errors.Is(err, outcome.ErrUnknown) && !errors.Is(err, outcome.ErrDeadline) {
		it.Doubtful = true
		l.config.Reroute(it)
		return
	}
	l.config.Door.Answer(it, nil, err)
}

// finish answers what is left when the stream has ended.
func (l *link) finish() {
	l.mu.Lock()
	l.mu.over = true
	queue, sent := l.mu.queue, l.mu.sent
	l.mu.queue, l.mu.sent = nil, nil
	l.mu.Unlock()
	bySeq := slices.SortedFunc(maps.Values(sent), func(a, b *door.Item) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, it := range bySeq {
		l.unknown(it, outcome.ErrUnknown)
	}
	for _, it := range queue {
		l.config.Reroute(it)
	}
}
