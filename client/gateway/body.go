package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/estimate"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// readStep is by how much the room for a body grows that does not say how long it is.
const readStep = 64 << 10

// body is what a request has asked, as it is held.
type body struct {
	bytes   []byte
	request estimate.Request
	sums    canon.Sums
	// room is what it takes of the gateway's.
	room int64
}

// errNoRoom: too many bodies are held.
var errNoRoom = errors.New("no room for the body")

// read holds a body, and what is to be known of it. What it took of the room is to be
// given back with drop, also with an error.
func (g *Gateway) read(r *http.Request) (b body, err error) {
	if r.ContentLength > g.config.BodyMax {
		return b, estimate.ErrTooLarge
	}
	options := g.config.Estimates
	options.BytesMax = g.config.BodyMax
	estimated := estimate.NewBody(options)
	var held bytes.Buffer
	if err = g.grow(&b, max(r.ContentLength, 0)); err != nil {
		return b, err
	}
	held.Grow(int(b.room))
	piece := make([]byte, min(readStep, max(r.ContentLength, 512)))
	for {
		n, failed := r.Body.Read(piece)
		if over := int64(held.Len()+n) - b.room; over > 0 {
			if err = g.grow(&b, max(over, readStep)); err != nil {
				return b, err
			}
		}
		held.Write(piece[:n])
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

// grow takes more room.
func (g *Gateway) grow(b *body, n int64) error {
	if g.held.Add(n) > g.config.BodiesMax {
		g.held.Add(-n)
		g.counts.unread.Add(1)
		return errNoRoom
	}
	b.room += n
	return nil
}

// drop gives the room back.
func (g *Gateway) drop(b *body) {
	g.held.Add(-b.room)
	b.room, b.bytes = 0, nil
}

// unreadable is the refusal of a body that could not be read.
func unreadable(err error) refuse.Refusal {
	switch {
	case errors.Is(err, errNoRoom):
		return refuse.Refusal{Reason: refuse.Capacity, Detail: "the gateway holds as many requests as it can"}
	case errors.Is(err, estimate.ErrTooLarge):
		return refuse.Refusal{Reason: refuse.TooLarge, Detail: err.Error()}
	default:
		return refuse.Refusal{Reason: refuse.Malformed, Detail: err.Error()}
	}
}
