package forward

import (
	"context"
	"errors"
	"sync"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/outcome"
)

// RelayConfig says where a follower's operations go. All of it is required.
type RelayConfig struct {
	// Submit takes an item. It must not block, and answers it exactly once.
	Submit func(*door.Item)
	// Cancel says that nobody waits for an item any more; Strand, that nobody may
	// say any more whether somebody does, and cancels it as well.
	Cancel, Strand func(*door.Item)
	// AnswersMax bounds the answers that wait for a follower that doesn't read.
	AnswersMax int
}

// Serve takes operations from a follower and answers them in any order, until
// the stream ends.
func Serve(stream peerv1.Peer_ForwardServer, c RelayConfig) error {
	r := &relay{config: c, stream: stream, wake: make(chan struct{}, 1)}
	r.mu.open = make(map[uint64]*relayed)
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	var sender sync.WaitGroup
	sender.Go(func() { r.send(ctx, cancel) })
	err := r.receive(ctx)
	cancel()
	sender.Wait()
	r.abandon()
	return err
}

// relayed is one operation of a follower.
type relayed struct {
	door.Item
	relay *relay
}

// Answer implements door.Owner.
func (it *relayed) Answer(result *logv1.Result, err error) { it.relay.answer(it.Seq, result, err) }

// relay is the leader's end of one follower's stream.
type relay struct {
	config RelayConfig
	stream peerv1.Peer_ForwardServer
	wake   chan struct{}

	mu struct {
		sync.Mutex
		// open is what was not answered, by number.
		open map[uint64]*relayed
		// answers wait to be sent.
		answers []*peerv1.ForwardAnswer
	}
}

// errUnread ends the stream of a follower that asks and never listens.
var errUnread = errors.New("answers are not being read")

// receive submits what comes until the stream ends.
func (r *relay) receive(ctx context.Context) error {
	for ctx.Err() == nil {
		request, err := r.stream.Recv()
		if err != nil {
			// The follower has gone, or has another leader. Nobody reads what the
			// stream ends with.
			return err
		}
		now := time.Now()
		for _, item := range request.GetItems() {
			if item.GetCancel() {
				r.withdraw(item.GetSeq())
				continue
			}
			r.submit(item, now)
		}
		if r.backlog() > r.config.AnswersMax {
			return errUnread
		}
	}
	return nil
}

func (r *relay) submit(item *peerv1.ForwardItem, now time.Time) {
	it := &relayed{relay: r}
	it.Operation = item.GetOperation()
	it.Deadline = now.Add(time.Duration(item.GetTimeout()))
	if item.GetMaxWait() > 0 {
		waited := time.Duration(max(0, item.GetWaited()))
		it.Since, it.MaxWait = now.Add(-waited), waited+time.Duration(item.GetMaxWait())
	}
	it.Relayed = true
	it.Seq = item.GetSeq()
	it.Owner = it
	r.mu.Lock()
	r.mu.open[it.Seq] = it
	r.mu.Unlock()
	r.config.Submit(&it.Item)
}

func (r *relay) withdraw(seq uint64) {
	r.mu.Lock()
	it := r.mu.open[seq]
	r.mu.Unlock()
	if it != nil {
		r.config.Cancel(&it.Item)
	}
}

func (r *relay) answer(seq uint64, result *logv1.Result, err error) {
	a := &peerv1.ForwardAnswer{Seq: seq, Result: result}
	if err != nil {
		a.Failure = outcome.FailureOf(err)
	}
	r.mu.Lock()
	delete(r.mu.open, seq)
	r.mu.answers = append(r.mu.answers, a)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *relay) backlog() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.answers)
}

// send drains the answers, everything that waits in one message.
func (r *relay) send(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		for answers := r.take(); len(answers) > 0; answers = r.take() {
			if r.stream.Send(&peerv1.ForwardResponse{Answers: answers}) != nil {
				return
			}
		}
	}
}

func (r *relay) take() []*peerv1.ForwardAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	answers := r.mu.answers
	if len(answers) > itemsMax {
		answers, r.mu.answers = answers[:itemsMax:itemsMax], answers[itemsMax:]
		return answers
	}
	r.mu.answers = nil
	return answers
}

// abandon drops what waits: the stream is gone, and with it who asked.
func (r *relay) abandon() {
	r.mu.Lock()
	open := make([]*relayed, 0, len(r.mu.open))
	for _, it := range r.mu.open {
		open = append(open, it)
	}
	r.mu.Unlock()
	for _, it := range open {
		r.config.Strand(&it.Item)
	}
}
