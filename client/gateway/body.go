package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/estimate"
	"github.com/quorlease/quorlease/client/gateway/internal/room"
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
	room    *room.Room
	// left: it is not needed any more.
	left bool
}

// enter makes a copy a user of the room.
func (b *body) enter() {
	b.left = false
	b.room.Enter()
}

// leave lets go of it: nothing is tried again once an answer has begun, and that may go on for
// an hour. Only the first call counts, and none where nothing is held.
func (b *body) leave() {
	if b.left || b.room == nil {
		return
	}
	b.left, b.bytes = true, nil
	b.room.Leave()
}

// read holds a client's body, and what is to be known of it. Its room has one user, also with
// an error.
func (g *Gateway) read(r *http.Request, set *settings, client string) (b body, err error) {
	options := g.config.Estimates
	options.BytesMax = set.BodyMax
	estimated := estimate.NewBody(options)
	b, err = g.gather(r, set, client, func(piece []byte) error {
		_, err := estimated.Write(piece)
		return err
	})
	if err != nil {
		return b, err
	}
	if b.request, err = estimated.Close(); err != nil {
		return b, err
	}
	b.sums = g.hasher.Body(b.bytes)
	return b, nil
}

// gather holds a client's body, and shows each piece of it as it comes. Its room has one user, also
// with an error.
func (g *Gateway) gather(
	r *http.Request, set *settings, client string, show func(piece []byte) error,
) (b body, err error) {
	b.room = g.rooms.Open(client)
	if r.ContentLength > set.BodyMax {
		return b, estimate.ErrTooLarge
	}
	var held []byte
	if r.ContentLength > 0 {
		held = make([]byte, 0, min(r.ContentLength, believed)+bytes.MinRead)
	}
	for r.Body != nil {
		held = roomier(held, set.BodyMax)
		// The last read finds nothing but the end: what it needs is not counted.
		if err = b.room.Grow(min(int64(cap(held)), set.BodyMax)); err != nil {
			if errors.Is(err, room.ErrFull) {
				g.counts.unread.Add(1)
			}
			return b, err
		}
		free := held[len(held):cap(held)]
		n, failed := r.Body.Read(free[:min(len(free), readStep)])
		piece := free[:n]
		held = held[:len(held)+n]
		if int64(len(held)) > set.BodyMax {
			return b, estimate.ErrTooLarge
		}
		if err = show(piece); err != nil {
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
	case errors.Is(err, room.ErrFull):
		return refuse.Refusal{Reason: refuse.Capacity, Detail: "the gateway holds as many requests as it can"}
	case errors.Is(err, room.ErrShare):
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
