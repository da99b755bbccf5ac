// Package overview draws the picture of the service Overview, and shows it to whoever
// watches; with it, the services that show a part of it once: Cluster and Clients.
//
// A picture is drawn when somebody wants one, at most four times a second, and is the
// same for everybody: a hundred pages that are open cost what one does, but for
// sending. Whoever watches waits by itself and takes the latest picture when it is
// ready for one, so that one who reads slowly holds nobody up.
//
// What is *not* here: what is remembered of the last hour (cluster/overview), and
// JSON (api/httpapi).
package overview

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/overview"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

const (
	// pause is the least time between two pictures, every the most while somebody
	// watches.
	pause = 250 * time.Millisecond
	every = time.Second
	// WatchersMax bounds those who watch at once.
	WatchersMax = 64
	// topDefault and topMax are how many clients a picture shows.
	topDefault, topMax = 20, 100
)

// Node is what a picture is drawn of. *cluster.Node is one.
type Node interface {
	Status() cluster.Status
	// View reads the replica; stale, at once.
	View(ctx context.Context, stale bool, read func(*fsm.Machine, bucket.Instant)) error
	// Queues with no limit are those of the key of each limit where most wait, as the
	// leader says.
	Queues(ctx context.Context, limit, key string) []queue.ClassState
	Overview() *overview.Book
}

// Config says whose picture it is. All of it is required, and called from any
// goroutine.
type Config struct {
	Node Node
	// UntilDrained ends with a context and when the node closes; Draining says so.
	UntilDrained func(context.Context) (context.Context, context.CancelFunc)
	Draining     error
	// Crowded is the answer to whoever is one too many.
	Crowded error
}

// Hub is the service. It is safe for concurrent use.
type Hub struct {
	quorleasev1.UnimplementedOverviewServer
	config   Config
	watchers atomic.Int64
	queues   *queues

	// drawing is held while a picture is drawn, which takes milliseconds.
	drawing sync.Mutex
	latest  *Picture
}

// New returns the service. Close ends what it has begun.
func New(c Config) *Hub { return &Hub{config: c, queues: newQueues(c.Node)} }

// Close returns when nothing is left that the hub has begun. No picture is drawn
// afterwards that has queues.
func (h *Hub) Close() { h.queues.close() }

// Watch implements the service.
func (h *Hub) Watch(
	r *quorleasev1.OverviewWatchRequest, stream grpc.ServerStreamingServer[quorleasev1.OverviewWatchResponse],
) error {
	return h.Follow(stream.Context(), r, func(s *Shown) error { return stream.Send(s.Response) })
}

// Now is the picture of now.
func (h *Hub) Now(ctx context.Context, r *quorleasev1.OverviewWatchRequest) (*Shown, error) {
	top, err := topOf(r)
	if err != nil {
		return nil, err
	}
	return h.picture(ctx, nil).top(top), nil
}

// Follow sends the picture of now, then another when something has changed, and each
// second. It returns when send fails, when ctx ends, and when the node closes.
func (h *Hub) Follow(ctx context.Context, r *quorleasev1.OverviewWatchRequest, send func(*Shown) error) error {
	top, err := topOf(r)
	if err != nil {
		return err
	}
	defer h.watchers.Add(-1)
	if h.watchers.Add(1) > WatchersMax {
		return h.config.Crowded
	}
	drained, cancel := h.config.UntilDrained(ctx)
	defer cancel()
	var last *Picture
	for {
		if last != nil && !h.due(drained, last) {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("watch: %w", err)
			}
			return h.config.Draining
		}
		last = h.picture(ctx, last)
		if err := send(last.top(top)); err != nil {
			return err
		}
	}
}

func topOf(r *quorleasev1.OverviewWatchRequest) (int, error) {
	switch top := r.GetTop(); {
	case top == 0:
		return topDefault, nil
	case top > topMax:
		return 0, convert.Wrong("top", fmt.Sprintf("%d is out of range 0..%d", top, topMax))
	default:
		return int(top), nil
	}
}

// due waits until there may be a picture that says more than the last; false: nobody
// waits for it any more.
func (h *Hub) due(ctx context.Context, last *Picture) bool {
	timer := time.NewTimer(max(0, pause-time.Since(last.at)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	timer.Reset(max(0, every-time.Since(last.at)))
	select {
	case <-h.config.Node.Overview().Changed(last.version):
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// picture is the latest, drawn anew where there is none that is another than last and
// young enough.
func (h *Hub) picture(ctx context.Context, last *Picture) *Picture {
	h.drawing.Lock()
	defer h.drawing.Unlock()
	if p := h.latest; p != nil && p != last && time.Since(p.at) < pause {
		return p
	}
	h.latest = h.draw(ctx)
	return h.latest
}
