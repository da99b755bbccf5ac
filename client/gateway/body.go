package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/estimate"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

const (
	// readStep is how much of a body is read at once.
	readStep = 64 << 10
	// believed is how much room a body gets at first because it says that it is so long.
	believed = 1 << 20
)

// body is what a request has asked, as it is held. It is used by one goroutine at a time; a
// copy is another user of the same room.
type body struct {
	bytes   []byte
	request estimate.Request
	sums    canon.Sums
	room    *room
	// left: it is not needed any more.
	left bool
}

// enter makes a copy a user of the room.
func (b *body) enter() {
	b.left = false
	b.room.enter()
}

// leave lets go of it: nothing is tried again once an answer has begun, and that may go on for
// an hour. Only the first call counts, and none where nothing is held.
func (b *body) leave() {
	if b.left || b.room == nil {
		return
	}
	b.left, b.bytes = true, nil
	b.room.leave()
}

// room is what a body takes of what all of them may: as long as its client waits for an answer
// to begin or somebody works on it, who may do so for others when its client has gone. Safe for
// concurrent use.
type room struct {
	rooms  *rooms
	client string
	mu     sync.Mutex
	bytes  int64
	users  int
}

// grow takes more, by its only user.
func (r *room) grow(to int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to <= r.bytes {
		return nil
	}
	if err := r.rooms.take(r.client, to-r.bytes); err != nil {
		return err
	}
	r.bytes = to
	return nil
}

// enter adds a user, also when there was none left.
func (r *room) enter() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users++; r.users == 1 {
		r.rooms.give(r.client, -r.bytes)
	}
}

// leave takes one away: the last one gives the room back.
func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users--; r.users == 0 {
		r.rooms.give(r.client, r.bytes)
	}
}

// Why there is no room for a body.
var (
	errNoRoom  = errors.New("no room for the body")
	errNoShare = errors.New("no room for the client's body")
)

// rooms are what all bodies take, and those of each client, so that none of them fills it for
// all others. It is safe for concurrent use.
type rooms struct {
	mu sync.Mutex
	// most is what all of them may take, and share what those of one client may.
	most, share int64            // guarded by mu
	all         int64            // guarded by mu
	byClient    map[string]int64 // guarded by mu
}

func newRooms(most, share int64) *rooms {
	return &rooms{most: most, share: share, byClient: make(map[string]int64)}
}

// bound changes how much there may be. What is held already stays.
func (r *rooms) bound(most, share int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most, r.share = most, share
}

// take takes so many bytes for a client.
func (r *rooms) take(client string, n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.all+n > r.most:
		return errNoRoom
	case r.byClient[client]+n > r.share:
		return errNoShare
	}
	r.addLocked(client, n)
	return nil
}

// give gives so many back.
func (r *rooms) give(client string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(client, -n)
}

func (r *rooms) addLocked(client string, n int64) {
	r.all += n
	if r.byClient[client] += n; r.byClient[client] == 0 {
		delete(r.byClient, client)
	}
}

// held is what all bodies take.
func (r *rooms) held() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// spoken is a body as it is sent. What was sent is not held by it.
type spoken struct{ rest []byte }

// Read gives what comes next.
func (s *spoken) Read(p []byte) (int, error) {
	n := copy(p, s.rest)
	if s.rest = s.rest[n:]; len(s.rest) == 0 {
		s.rest = nil
		return n, io.EOF
	}
	return n, nil
}

// Close does nothing: who reads may still do so.
func (*spoken) Close() error { return nil }

// read holds a client's body, and what is to be known of it. Its room has one user, also with
// an error.
func (g *Gateway) read(r *http.Request, set *settings, client string) (b body, err error) {
	b.room = &room{rooms: g.rooms, client: client, users: 1}
	if r.ContentLength > set.BodyMax {
		return b, estimate.ErrTooLarge
	}
	options := g.config.Estimates
	options.BytesMax = set.BodyMax
	estimated := estimate.NewBody(options)
	var held []byte
	if r.ContentLength > 0 {
		held = make([]byte, 0, min(r.ContentLength, believed)+bytes.MinRead)
	}
	for r.Body != nil {
		held = roomier(held, set.BodyMax)
		// The last read finds nothing but the end: what it needs is not counted.
		if err = b.room.grow(min(int64(cap(held)), set.BodyMax)); err != nil {
			if errors.Is(err, errNoRoom) {
				g.counts.unread.Add(1)
			}
			return b, err
		}
		free := held[len(held):cap(held)]
		n, failed := r.Body.Read(free[:min(len(free), readStep)])
		piece := free[:n]
		held = held[:len(held)+n]
		if _, err = estimated.Write(piece); err != nil {
			return b, err
		}
		if errors.Is(failed, io.EOF) {
			break
		}
		if failed != nil {
			return b, failed
		}
	}
	b.bytes = held
	if b.request, err = estimated.Close(); err != nil {
		return b, err
	}
	b.sums = g.hasher.Body(b.bytes)
	return b, nil
}

// roomier is a body with room for what is read next: twice as much as before, and no more than
// the largest body needs, so that each that may be taken fits where the largest does.
func roomier(held []byte, most int64) []byte {
	if cap(held)-len(held) >= bytes.MinRead {
		return held
	}
	larger := min(2*int64(cap(held)), most) + bytes.MinRead
	return append(make([]byte, 0, larger), held...)
}

// isLate says whether a connection's deadline has passed.
func isLate(err error) bool {
	var late interface{ Timeout() bool }
	return errors.As(err, &late) && late.Timeout()
}

// unreadable is the refusal of a body that could not be read.
func unreadable(err error) refuse.Refusal {
	switch {
	case errors.Is(err, errNoRoom):
		return refuse.Refusal{Reason: refuse.Capacity, Detail: "the gateway holds as many requests as it can"}
	case errors.Is(err, errNoShare):
		return refuse.Refusal{
			Reason: refuse.Concurrency, Scope: "client",
			Detail: "the gateway holds as much of this client's requests as it may",
		}
	case errors.Is(err, estimate.ErrTooLarge):
		return refuse.Refusal{Reason: refuse.TooLarge, Detail: err.Error()}
	case errors.Is(err, estimate.ErrBody):
		return refuse.Refusal{Reason: refuse.Malformed, Detail: err.Error()}
	case isLate(err):
		return refuse.Refusal{Reason: refuse.Malformed, Detail: "the request's body came too slowly"}
	default:
		// What the connection says of itself is nobody's business.
		return refuse.Refusal{Reason: refuse.Malformed, Detail: "the request's body could not be read"}
	}
}
