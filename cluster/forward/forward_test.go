package forward_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/batch"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/forward"
	"github.com/quorlease/quorlease/cluster/outcome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leader answers as the test says.
type leader struct {
	peerv1.UnimplementedPeerServer
	submit func(*door.Item)
	cancel func(*door.Item)
	// largest is the largest message that came, in items.
	stop func()
}

func (l *leader) Forward(stream peerv1.Peer_ForwardServer) error {
	return forward.Serve(stream, forward.RelayConfig{
		Submit: l.submit, Cancel: l.cancel, Strand: l.cancel, AnswersMax: 10_000,
	})
}

// startLeader serves l until the test ends or l.stop is called.
func startLeader(t *testing.T, l *leader) peerv1.PeerClient {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	peerv1.RegisterPeerServer(server, l)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient("passthrough:///leader",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	l.stop = server.Stop
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		serving.Wait()
	})
	return peerv1.NewPeerClient(conn)
}

// waiter is an item and its answer.
type waiter struct {
	door.Item
	result *logv1.Result
	err    error
	done   chan struct{}
}

// Answer implements door.Owner.
func (w *waiter) Answer(r *logv1.Result, err error) {
	w.result, w.err = r, err
	close(w.done)
}

func (w *waiter) wait(t *testing.T) {
	t.Helper()
	select {
	case <-w.done:
	case <-time.After(10 * time.Second):
		t.Fatal("no answer")
	}
}

// follower is a door with a forwarder behind it.
type follower struct {
	door      *door.Door
	forwarder *forward.Forwarder
	rerouted  chan *door.Item
}

func newFollower(t *testing.T, client peerv1.PeerClient) *follower {
	t.Helper()
	f := &follower{door: door.New(10_000, 10_000), rerouted: make(chan *door.Item, 10_000)}
	f.forwarder = forward.New(forward.Config{
		Door:     f.door,
		Leader:   func() (string, string) { return "a.00000000", "leader" },
		Client:   func(string) (peerv1.PeerClient, error) { return client, nil },
		Reroute:  func(it *door.Item) { f.rerouted <- it },
		QueueMax: 10_000,
	})
	t.Cleanup(f.forwarder.Close)
	return f
}

func (f *follower) send(t *testing.T, client string) *waiter {
	t.Helper()
	w := &waiter{done: make(chan struct{})}
	w.Operation = &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: &logv1.Acquire{Client: client}}}
	w.Size, _ = batch.Size(w.Operation)
	w.Deadline, w.Owner = time.Now().Add(time.Minute), w
	if err := f.door.Admit(&w.Item); err != nil {
		t.Fatal(err)
	}
	if !f.forwarder.Enqueue(&w.Item) {
		t.Fatal("not taken")
	}
	return w
}

// echo answers with the client's name as the message of a refusal.
func echo(it *door.Item) {
	it.Owner.Answer(&logv1.Result{Kind: &logv1.Result_Refusal{
		Refusal: &logv1.Refusal{Message: it.Operation.GetAcquire().GetClient()},
	}}, nil)
}

func TestEachGetsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	// The leader answers in another order than it was asked.
	var mu sync.Mutex
	var held []*door.Item
	l := &leader{cancel: func(*door.Item) {}, submit: func(it *door.Item) {
		mu.Lock()
		held = append(held, it)
		batch := held
		if len(held) < 100 {
			batch = nil
		} else {
			held = nil
		}
		mu.Unlock()
		for i := range batch {
			echo(batch[len(batch)-1-i])
		}
	}}
	f := newFollower(t, startLeader(t, l))
	var waiters []*waiter
	for i := range 1000 {
		waiters = append(waiters, f.send(t, fmt.Sprint(i)))
	}
	for i, w := range waiters {
		w.wait(t)
		if got := w.result.GetRefusal().GetMessage(); w.err != nil || got != fmt.Sprint(i) {
			t.Fatalf("item %d got the answer %q, %v", i, got, w.err)
		}
	}
}

func TestR2BrokenStream(t *testing.T) {
	t.Parallel()
	arrived := make(chan *door.Item, 10)
	l := &leader{cancel: func(*door.Item) {}, submit: func(it *door.Item) { arrived <- it }}
	f := newFollower(t, startLeader(t, l))
	sent := f.send(t, "sent")
	<-arrived
	l.stop()
	sent.wait(t)
	if !errors.Is(sent.err, outcome.ErrUnknown) {
		t.Fatalf("one that was sent ended with %v", sent.err)
	}
	// Nobody listens any more: what comes now is not sent.
	late := f.send(t, "late")
	select {
	case it := <-f.rerouted:
		if it != &late.Item || !f.door.Unclaim(it) {
			t.Fatal("another one was rerouted, or it was answered as well")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("one that was not sent is lost")
	}
	select {
	case it := <-f.rerouted:
		t.Fatalf("%v was sent and is rerouted", it.Operation)
	default:
	}
}

func TestLeaderChanged(t *testing.T) {
	t.Parallel()
	arrived := make(chan *door.Item, 10)
	l := &leader{cancel: func(*door.Item) {}, submit: func(it *door.Item) { arrived <- it }}
	f := newFollower(t, startLeader(t, l))
	sent := f.send(t, "sent")
	<-arrived
	// The same leader, or none, is no reason to give up.
	f.forwarder.LeaderChanged("a.00000000")
	f.forwarder.LeaderChanged("")
	select {
	case <-sent.done:
		t.Fatalf("given up: %v", sent.err)
	default:
	}
	f.forwarder.LeaderChanged("b.00000000")
	sent.wait(t)
	if !errors.Is(sent.err, outcome.ErrUnknown) {
		t.Fatalf("got %v", sent.err)
	}
}

func TestFailuresOfTheLeader(t *testing.T) {
	t.Parallel()
	answers := map[string]error{
		"deposed": outcome.ErrNotLeader, "low": outcome.ErrDiskLow, "lost": outcome.ErrUnknown,
		"late": outcome.ErrDeadlineProposed,
	}
	l := &leader{cancel: func(*door.Item) {}, submit: func(it *door.Item) {
		it.Owner.Answer(nil, answers[it.Operation.GetAcquire().GetClient()])
	}}
	f := newFollower(t, startLeader(t, l))
	for name, want := range answers {
		if name == "deposed" {
			continue
		}
		w := f.send(t, name)
		w.wait(t)
		if !errors.Is(w.err, want) {
			t.Errorf("%s: got %v, want %v", name, w.err, want)
		}
	}
	w := f.send(t, "deposed")
	if it := <-f.rerouted; it != &w.Item || !f.door.Unclaim(it) {
		t.Error("what was not proposed is not sent on")
	}
}

func TestCancelReachesTheLeader(t *testing.T) {
	t.Parallel()
	arrived, cancelled := make(chan *door.Item, 10), make(chan *door.Item, 10)
	l := &leader{
		submit: func(it *door.Item) { arrived <- it },
		cancel: func(it *door.Item) { cancelled <- it },
	}
	f := newFollower(t, startLeader(t, l))
	w := f.send(t, "gone")
	it := <-arrived
	f.door.Cancel(&w.Item)
	w.wait(t)
	if !errors.Is(w.err, outcome.ErrUnknown) || !errors.Is(w.err, context.Canceled) {
		t.Errorf("got %v", w.err)
	}
	select {
	case got := <-cancelled:
		if got != it {
			t.Error("another one was cancelled")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the leader goes on for nobody")
	}
	// The answer that comes all the same finds nobody.
	echo(it)
	other := f.send(t, "other")
	echo(<-arrived)
	other.wait(t)
	if other.err != nil {
		t.Errorf("the stream broke: %v", other.err)
	}
}
