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

// body is what a request has asked, as it is held.
type body struct {
	bytes   []byte
	request estimate.Request
	sums    canon.Sums
	room    *room
}

// room is what a body takes of what all of them may: as long as its client waits or
// somebody works on it, who may do so for others when its client has gone. Safe for
// concurrent use.
type room struct {
	gateway *Gateway
	mu      sync.Mutex
	bytes   int64
	users   int
}

// errNoRoom: too many bodies are held.
var errNoRoom = errors.New("no room for the body")

// grow takes more, by its only user.
func (r *room) grow(to int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	more := to - r.bytes
	if more <= 0 {
		return nil
	}
	if r.gateway.held.Add(more) > r.gateway.config.BodiesMax {
		r.gateway.held.Add(-more)
		r.gateway.counts.unread.Add(1)
		return errNoRoom
	}
	r.bytes = to
	return nil
}

// enter adds a user, also when there was none left.
func (r *room) enter() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users++; r.users == 1 {
		r.gateway.held.Add(r.bytes)
	}
}

// leave takes one away: the last one gives the room back.
func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users--; r.users == 0 {
		r.gateway.held.Add(-r.bytes)
	}
}

// read holds a body, and what is to be known of it. Its room has one user, also with an
// error.
func (g *Gateway) read(r *http.Request) (b body, err error) {
	b.room = &room{gateway: g, users: 1}
	if r.ContentLength > g.config.BodyMax {
		return b, estimate.ErrTooLarge
	}
	options := g.config.Estimates
	options.BytesMax = g.config.BodyMax
	estimated := estimate.NewBody(options)
	var held bytes.Buffer
	if r.ContentLength > 0 {
		held.Grow(int(min(r.ContentLength, believed)) + bytes.MinRead)
	}
	piece := make([]byte, pieceFor(r.ContentLength))
	for r.Body != nil {
		n, failed := r.Body.Read(piece)
		held.Write(piece[:n])
		if err = b.room.grow(int64(held.Cap())); err != nil {
			return b, err
		}
		if _, err = estimated.Write(piece[:n]); err != nil {
			return b, err
		}
		if errors.Is(failed, io.EOF) {
			break
		}
		if failed != nil {
			return b, failed
		}
	}
	b.bytes = held.Bytes()
	if b.request, err = estimated.Close(); err != nil {
		return b, err
	}
	b.sums = g.hasher.Body(b.bytes)
	return b, nil
}

// pieceFor is how much to read at once of a body of a length that may not be known.
func pieceFor(length int64) int64 {
	if length < 0 {
		return readStep
	}
	return min(readStep, length+1)
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
