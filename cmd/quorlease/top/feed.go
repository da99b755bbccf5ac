package top

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	tea "charm.land/bubbletea/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
)

const (
	// firstPause lies between a node that went away and the next endpoint. It
	// doubles with each round over all of them, up to longestPause.
	firstPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
	// silence is how long a node may send nothing. It sends a picture each second:
	// one that doesn't is frozen, or behind a line that is cut.
	silence = 5 * time.Second
	// clockStep is how often ages on the screen grow.
	clockStep = time.Second
)

var (
	errSilent = errors.New("the node has sent nothing for " + silence.String())
	errEnded  = errors.New("the node ended the watch")
)

// What a feed sends.
type (
	// pictureMsg is a new picture.
	pictureMsg struct {
		endpoint string
		answer   *quorleasev1.OverviewWatchResponse
		at       time.Time
	}
	// lostMsg says that an endpoint has no picture to give, and when the next one
	// is asked.
	lostMsg struct {
		endpoint, problem, next string
		at, again               time.Time
	}
	// tickMsg is the time.
	tickMsg time.Time
)

// line is a connection to one node.
type line struct {
	conn  grpc.ClientConnInterface
	close func()
}

// dial connects to an endpoint.
type dial func(ctx context.Context, endpoint string) (line, error)

// connect is the dial of real endpoints.
func (o *Options) connect(ctx context.Context, endpoint string) (line, error) {
	nodes, err := ask.Connect([]string{endpoint}, o.Timeout)
	if err != nil {
		return line{}, err
	}
	conn, _, err := nodes.First(ctx)
	if err != nil {
		nodes.Close()
		return line{}, err
	}
	return line{conn: conn, close: nodes.Close}, nil
}

// feed keeps a watch open, at one endpoint after the other.
type feed struct {
	endpoints []string
	request   *quorleasev1.OverviewWatchRequest
	connect   dial
	// send takes a message on, and may wait. Called from several goroutines.
	send func(tea.Msg)
}

// tick sends the time until the context is done.
func (f *feed) tick(ctx context.Context) {
	ticker := time.NewTicker(clockStep)
	defer ticker.Stop()
	for {
		f.send(tickMsg(time.Now()))
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// run sends pictures until the context is done.
func (f *feed) run(ctx context.Context) {
	failures := 0
	for at := 0; ; at = (at + 1) % len(f.endpoints) {
		seen, err := f.follow(ctx, f.endpoints[at])
		if ctx.Err() != nil {
			return
		}
		if seen {
			failures = 0
		}
		wait, now := pause(failures/len(f.endpoints)), time.Now()
		failures++
		f.send(lostMsg{
			endpoint: f.endpoints[at], problem: problemOf(err),
			next: f.endpoints[(at+1)%len(f.endpoints)], at: now, again: now.Add(wait),
		})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// pause is how long to wait after so many rounds without a picture. A part of it
// is random: those who watched one node do not come to the next together.
func pause(rounds int) time.Duration {
	whole := min(firstPause<<min(rounds, 10), longestPause)
	return whole/2 + rand.N(whole/2)
}

// follow sends the pictures of one endpoint until there are no more. It says
// whether there was one.
func (f *feed) follow(parent context.Context, endpoint string) (seen bool, err error) {
	l, err := f.connect(parent, endpoint)
	if err != nil {
		return false, err
	}
	defer l.close()
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	watchdog := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watchdog.Stop()
	stream, err := quorleasev1.NewOverviewClient(l.conn).Watch(ctx, f.request)
	if err != nil {
		return false, err
	}
	for {
		answer, err := stream.Recv()
		switch {
		case err == nil:
			watchdog.Reset(silence)
			seen = true
			f.send(pictureMsg{endpoint: endpoint, answer: answer, at: time.Now()})
		case errors.Is(context.Cause(ctx), errSilent):
			return seen, errSilent
		case errors.Is(err, io.EOF):
			return seen, errEnded
		default:
			return seen, err
		}
	}
}

// problemOf is an error for people. What a node said itself has advice with it;
// of a failure on the way only the cause is worth the room.
func problemOf(err error) string {
	if ask.Decided(err) {
		return ask.Explain(err).Error()
	}
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}
