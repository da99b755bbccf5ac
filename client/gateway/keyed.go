package gateway

import (
	"bytes"
	"cmp"
	"context"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/quorlease/quorlease/client/gateway/attempt"
	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/internal/out"
	"github.com/quorlease/quorlease/client/gateway/refuse"
	"github.com/quorlease/quorlease/client/gateway/replay"
	"github.com/quorlease/quorlease/client/gateway/who"
)

// readKey reads the idempotency key of a request, empty where that has none that means something. It
// is false where the request was refused for it.
func (c *call) readKey(w http.ResponseWriter) (string, bool) {
	if !replay.IsWrite(c.request.Method) {
		return "", true
	}
	key, err := replay.ReadKey(c.request.Header)
	refusal := refuse.Refusal{Reason: refuse.Malformed, Param: replay.Header}
	switch {
	case err != nil:
		refusal.Detail = "the header " + replay.Header + " can't be read: " + err.Error()
	case key == "" && c.set.Replays.Requires(c.request.URL.Path):
		refusal.Detail = "the header " + replay.Header + " is missing, without which nothing is written here"
	default:
		return key, true
	}
	c.refuse(w, &refusal)
	return "", false
}

// keeps says whether a key means something here. Who is not known is not one client, and must not be
// given what another one was answered.
func (c *call) keeps(key string) bool {
	return key != "" && c.who.Shares() != "" && !c.gateway.replays.Off()
}

// begins says whether the work of a request is to be done: it is the first one with its key, or has
// none. Otherwise it was answered.
func (c *call) begins(w http.ResponseWriter, key string, body canon.Sum) bool {
	g := c.gateway
	if !c.keeps(key) {
		return true
	}
	turn, answer, standing := g.replays.Begin(c.owns(key),
		g.hasher.Join(body, c.request.Method, c.request.URL.RequestURI()))
	switch standing {
	case replay.InFlight:
		c.refuse(w, &refuse.Refusal{Reason: refuse.InFlight})
	case replay.Reused:
		c.refuse(w, &refuse.Refusal{Reason: refuse.KeyReused})
	case replay.Kept:
		c.replay(w, &answer)
	case replay.First:
		c.turn = turn
	}
	return standing == replay.First
}

// owns is a key together with whose it is: who asks, for whom, and with which account where that
// is the client's own.
func (c *call) owns(key string) canon.Sum {
	whose := []string{key, c.who.Client, c.who.Tenant, c.who.Speaker}
	if !c.who.Keyed {
		for _, name := range who.Credentials() {
			whose = append(whose, strings.Join(c.request.Header[name], "\x00"))
		}
	}
	return c.gateway.hasher.Join(canon.Sum{}, whose...)
}

// replay answers with what was answered before. Nothing is asked of anybody, and nothing counted but
// that.
func (c *call) replay(w http.ResponseWriter, a *replay.Answer) {
	c.body.leave()
	to := out.New(w, c.request)
	defer to.End()
	a.Header.Set(replay.Replayed, "true")
	if a.Status != http.StatusNoContent {
		a.Header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	to.Begin(out.Head{Status: a.Status, Header: a.Header})
	for piece := range slices.Chunk(a.Body, out.Step) {
		if _, err := to.Write(piece); err != nil {
			c.ended(w, err, a.Status)
			return
		}
	}
}

// recorded does the work of the first request with a key, whose answer is kept where it is whole. Once
// it was sent it goes on when its client has gone: whoever comes again with the key gets the answer.
func (c *call) recorded(ctx context.Context, w http.ResponseWriter, to *out.Direct) attempt.Outcome {
	kept := out.Record(ctx, to, c.turn)
	err := c.lead(ctx, kept)
	c.turn.End(err == nil)
	return c.ended(w, cmp.Or(err, kept.Lost()), to.Status())
}

// lasting is the context of what is sent, which ends with its client where it has no key, and with the
// gateway where it has.
func (c *call) lasting(ctx context.Context) (_ context.Context, done func()) {
	if c.turn == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(c.gateway.life, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// unbounded spoils an answer of which nobody can tell whether it is whole: it ends with its
// connection.
func (c *call) unbounded(answer *http.Response) {
	if answer.Close && answer.ContentLength < 0 && answer.TransferEncoding == nil && replay.IsLasting(answer.StatusCode) {
		c.turn.Spoil()
	}
}

// hold reads the body of a write with a key that is passed on without a look at it otherwise. It is
// false where the request was answered.
func (c *call) hold(w http.ResponseWriter, key string) bool {
	var err error
	c.body, err = c.gateway.gather(c.request, c.set, c.who.Client, func([]byte) error { return nil })
	if err != nil {
		refusal := unreadable(err)
		c.refuse(w, &refusal)
		return false
	}
	if !c.begins(w, key, c.gateway.hasher.Body(c.unmarked()).Exact) {
		return false
	}
	again := *c.request
	again.Body, again.ContentLength = &out.Spoken{Rest: c.body.bytes}, int64(len(c.body.bytes))
	again.TransferEncoding = nil
	c.request = &again
	return true
}

// unmarked is a body without what separates its parts, which programs draw anew each time they write
// it.
func (c *call) unmarked() []byte {
	kind, params, err := mime.ParseMediaType(c.request.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		return c.body.bytes
	}
	return bytes.ReplaceAll(c.body.bytes, []byte(params["boundary"]), nil)
}
