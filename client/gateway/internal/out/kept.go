package out

import (
	"context"
	"net/http"

	"github.com/quorlease/quorlease/client/gateway/replay"
)

// Kept is a Sink whose answer is recorded, and goes on when its client has gone, as long as it
// is recorded. It is an http.ResponseWriter too, for what knows no Sink.
type Kept struct {
	to     *Direct
	turn   *replay.Turn
	client context.Context //nolint:containedctx // whether the client is still there
	header http.Header
	begun  bool
	lost   error
}

// Record returns a Kept for the client of to. client ends when it has gone.
func Record(client context.Context, to *Direct, turn *replay.Turn) *Kept {
	return &Kept{to: to, turn: turn, client: client, header: http.Header{}}
}

// Header is that of the answer, beside what was there before.
func (k *Kept) Header() http.Header { return k.header }

// Begin sends the head.
func (k *Kept) Begin(h Head) {
	k.begun = true
	k.turn.Begin(h.Status, h.Header)
	k.to.Begin(h)
}

// WriteHeader begins the answer with what is in Header; others than the first are left out.
func (k *Kept) WriteHeader(status int) {
	if status >= http.StatusOK && !k.begun {
		k.Begin(Head{Status: status, Header: k.header})
	}
}

// Write sends a part of the body, and records it.
func (k *Kept) Write(p []byte) (int, error) {
	if !k.begun {
		k.WriteHeader(http.StatusOK)
	}
	recorded := k.turn.Write(p)
	if k.lost == nil {
		k.lost = context.Cause(k.client)
	}
	if k.lost == nil {
		_, k.lost = k.to.Write(p)
	}
	if k.lost != nil && !recorded {
		return 0, k.lost
	}
	return len(p), nil
}

// Flush sends what was written. What fails is told by Lost, and by the next Write.
func (k *Kept) Flush() error {
	if k.lost == nil {
		k.lost = k.to.Flush()
	}
	return nil
}

// FlushError is Flush.
func (k *Kept) FlushError() error { return k.Flush() }

// Lost is why the client has not got all of it, nil where it has.
func (k *Kept) Lost() error { return k.lost }
