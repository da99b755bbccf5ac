package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

// node serves pictures over a connection in memory.
type node struct {
	quorleasev1.UnimplementedOverviewServer
	name     string
	listener *bufconn.Listener
	server   *grpc.Server
	done     chan struct{}
	// silent: it takes the question and sends one picture, and no other one.
	silent bool

	mu    sync.Mutex
	asked []uint32
}

func (n *node) Watch(
	request *quorleasev1.OverviewWatchRequest, stream grpc.ServerStreamingServer[quorleasev1.OverviewWatchResponse],
) error {
	n.mu.Lock()
	n.asked = append(n.asked, request.GetTop())
	n.mu.Unlock()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		answer := proto.CloneOf(storm())
		answer.Node = n.name
		if err := stream.Send(answer); err != nil {
			return err
		}
		if n.silent {
			<-stream.Context().Done()
			return stream.Context().Err()
		}
		select {
		case <-ticker.C:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// network is nodes by their endpoints, and when they were dialled.
type network struct {
	nodes map[string]*node

	mu    sync.Mutex
	dials []time.Time
}

func newNetwork(names ...string) *network {
	w := &network{nodes: map[string]*node{}}
	for _, name := range names {
		n := &node{name: name, listener: bufconn.Listen(1 << 20), server: grpc.NewServer(), done: make(chan struct{})}
		quorleasev1.RegisterOverviewServer(n.server, n)
		go func() {
			defer close(n.done)
			_ = n.server.Serve(n.listener)
		}()
		w.nodes[name] = n
	}
	return w
}

// stop ends a node and its connections.
func (n *node) stop() {
	n.server.Stop()
	<-n.done
}

func (w *network) connect(ctx context.Context, endpoint string) (line, error) {
	w.mu.Lock()
	w.dials = append(w.dials, time.Now())
	w.mu.Unlock()
	n := w.nodes[endpoint]
	if n == nil {
		return line{}, errors.New("connection refused")
	}
	conn, err := grpc.NewClient("passthrough:///"+endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return n.listener.DialContext(ctx)
		}))
	if err != nil {
		return line{}, err
	}
	return line{conn: conn, close: func() { _ = conn.Close() }}, ctx.Err()
}

// received are messages of a feed as a test sees them, one word each.
type received struct {
	mu    sync.Mutex
	words []string
}

func (r *received) send(msg tea.Msg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch msg := msg.(type) {
	case pictureMsg:
		r.words = append(r.words, msg.answer.GetNode())
	case lostMsg:
		r.words = append(r.words, fmt.Sprintf("lost:%s:%s", msg.endpoint, msg.next))
	}
}

func (r *received) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.words, " ")
}

// feeding runs a feed over a network for as long as during takes.
func feeding(t *testing.T, w *network, endpoints []string, during func(*received)) {
	t.Helper()
	got := &received{}
	f := &feed{
		endpoints: endpoints, request: &quorleasev1.OverviewWatchRequest{Top: 7}, connect: w.connect, send: got.send,
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.run(ctx) })
	during(got)
	cancel()
	running.Wait()
	for _, n := range w.nodes {
		n.stop()
	}
}

// TestReconnects goes to the next endpoint when a node goes away, and stays there.
func TestReconnects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork("n1", "n2")
		feeding(t, w, []string{"n1", "n2"}, func(got *received) {
			elapse(2500 * time.Millisecond)
			if got.text() != "n1 n1 n1" {
				t.Errorf("at first: %s", got.text())
			}
			w.nodes["n1"].stop()
			elapse(2500 * time.Millisecond)
			if want := "n1 n1 n1 lost:n1:n2 n2 n2 n2"; got.text() != want {
				t.Errorf("after n1 went: %s, want %s", got.text(), want)
			}
			if asked := w.nodes["n1"].asked; len(asked) != 1 || asked[0] != 7 {
				t.Errorf("asked for %d clients, want 7 once", asked)
			}
		})
	})
}

// elapse lets the time of a bubble go on.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestSilence takes a node that is frozen for one that has gone.
func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork("n1", "n2")
		w.nodes["n1"].silent = true
		feeding(t, w, []string{"n1", "n2"}, func(got *received) {
			elapse(silence - time.Millisecond)
			if got.text() != "n1" {
				t.Errorf("at first: %s", got.text())
			}
			elapse(time.Second)
			if want := "n1 lost:n1:n2 n2"; got.text() != want {
				t.Errorf("after %s: %s, want %s", silence, got.text(), want)
			}
		})
	})
}

// TestBackoff asks endpoints that are all dead less and less often, each in turn,
// and none of them less than every longestPause.
func TestBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork()
		feeding(t, w, []string{"a", "b"}, func(got *received) {
			elapse(time.Minute)
			if !strings.HasPrefix(got.text(), "lost:a:b lost:b:a lost:a:b ") {
				t.Errorf("asked %s", got.text())
			}
			n := len(w.dials)
			if first := w.dials[1].Sub(w.dials[0]); first > firstPause {
				t.Errorf("the next endpoint was asked after %s, at most %s", first, firstPause)
			}
			if last := w.dials[n-1].Sub(w.dials[n-2]); last < longestPause/2 || last > longestPause {
				t.Errorf("after a minute it asks every %s, want %s to %s", last, longestPause/2, longestPause)
			}
			if n < 12 || n > 40 {
				t.Errorf("it asked %d times in a minute", n)
			}
		})
	})
}

// TestProblems says what is wrong in words for people.
func TestProblems(t *testing.T) {
	t.Parallel()
	w := newNetwork("n1")
	defer w.nodes["n1"].stop()
	l, err := w.connect(t.Context(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	_, err = quorleasev1.NewClusterClient(l.conn).Status(t.Context(), &quorleasev1.ClusterStatusRequest{})
	if got := problemOf(err); !strings.Contains(got, "another version") {
		t.Errorf("a node that does not know the call: %q", got)
	}
	for err, want := range map[error]string{
		errSilent: "the node has sent nothing for 5s", errEnded: "the node ended the watch",
		io.ErrClosedPipe: io.ErrClosedPipe.Error(),
	} {
		if got := problemOf(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// TestDraw runs the whole program, with a pipe for a keyboard.
func TestDraw(t *testing.T) {
	t.Parallel()
	w := newNetwork("n1")
	defer w.nodes["n1"].stop()
	keyboard, press := io.Pipe()
	out := &terminal{}
	o := &Options{
		Clients: 20, Endpoints: []string{"n1"}, Input: keyboard, Output: out,
		LookupEnv: func(string) (string, bool) { return "", false },
	}
	ended := make(chan error, 1)
	go func() { ended <- o.draw(t.Context(), w.connect, tea.WithWindowSize(80, 24)) }()
	out.await(t, "\x1b[?1049h")
	out.await(t, "batch-scorer")
	if _, err := press.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = press.Close()
	out.await(t, "\x1b[?1049l")
}

// TestInterrupted ends well when the context does, as after a signal.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	w := newNetwork("n1")
	defer w.nodes["n1"].stop()
	keyboard, press := io.Pipe()
	out := &terminal{}
	o := &Options{
		Clients: 20, Endpoints: []string{"n1"}, Input: keyboard, Output: out,
		LookupEnv: func(string) (string, bool) { return "", false },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.draw(ctx, w.connect) }()
	out.await(t, "\x1b[?1049h")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = press.Close()
}

// terminal is what was written to one.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *terminal) await(t *testing.T, want string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		s.mu.Lock()
		found := strings.Contains(s.text.String(), want)
		s.mu.Unlock()
		if found {
			return
		}
	}
	t.Fatalf("no %q in %q", want, s.text.String())
}
