package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

// event is one of a stream; without a name it is data alone.
type event struct {
	name string
	data any
}

// voice is how an answer is put into words of an interface.
type voice interface {
	// plain is the whole answer.
	plain() any
	// open, part and close are the events of a stream: before the text, with some of it,
	// and after it.
	open() []event
	part(text string) []event
	close() []event
}

func (c *call) voice() voice {
	switch c.what {
	case responses:
		return responsesVoice{c}
	case messages:
		return messagesVoice{c}
	case embeddings:
		return embeddingsVoice{c}
	case contents:
		return contentsVoice{c}
	case converse:
		return converseVoice{c}
	default:
		return chatVoice{c}
	}
}

// seed is what the text of the answer follows from.
func (c *call) seed() uint64 { return hash(c.s.config.Seed+c.prompt.hash, c.request.Model) }

// text is what was written from one token on.
func (c *call) text(from int64) string { return text(c.seed(), from, c.written) }

// cut says whether the answer would have been longer.
func (c *call) cut() bool { return c.length < c.s.config.OutputTokens }

// seconds is the wall time at which the call arrived.
func (c *call) seconds() int64 { return c.s.config.Start.Add(c.record.Arrived).Unix() }

// due is when so many tokens are there.
func (c *call) due(n int64) time.Duration {
	due := c.begun + c.s.config.Latency
	if speed := c.s.config.TokensPerSecond; speed > 0 {
		due += time.Duration(n) * time.Second / time.Duration(speed)
	}
	return due
}

// write waits until the answer has so many tokens, and counts them. Where it ends
// before, those that are there are counted.
func (c *call) write(ctx context.Context, n int64) error {
	clock := c.s.config.Clock
	err := clock.Sleep(ctx, c.due(n)-clock.Now())
	if err != nil {
		now, speed := clock.Now(), c.s.config.TokensPerSecond
		there := c.written
		if past := now - c.due(0); past > 0 && speed > 0 {
			there = int64(past) * speed / int64(time.Second)
		}
		n = min(n, max(c.written, there))
	}
	if more := n - c.written; more > 0 {
		c.written = n
		if c.s.config.API == Anthropic && !c.s.config.EstimateOutput {
			c.s.mu.Lock()
			c.s.mu.account.Settle(clock.Now(), provider.Call{Output: more})
			c.s.mu.Unlock()
		}
	}
	return err
}

// plain answers in one piece.
func (c *call) plain(ctx context.Context) {
	switch c.fault.Kind {
	case Break:
		c.breakOff()
	case Hang:
		<-ctx.Done()
		return
	case Refuse, Spoil:
	}
	if c.write(ctx, c.length) != nil {
		return
	}
	c.record.Outcome, c.record.Status = Served, http.StatusOK
	c.json(http.StatusOK, c.voice().plain())
}

// breakOff closes the connection, with whatever has been sent.
func (c *call) breakOff() {
	c.record.Outcome = Broken
	panic(http.ErrAbortHandler)
}

// errStopped ends a stream whose end has been seen to.
var errStopped = errors.New("stopped")

// stream answers in pieces.
func (c *call) stream(ctx context.Context) {
	h := c.w.Header()
	h.Set("Content-Type", c.contentType())
	h.Set("Cache-Control", "no-cache")
	// The first byte is not sent before the first token is there.
	if c.write(ctx, 0) != nil {
		return
	}
	c.record.Status = http.StatusOK
	c.w.WriteHeader(http.StatusOK)
	voice := c.voice()
	if c.emit(ctx, voice.open()) != nil {
		return
	}
	for c.written < c.length {
		from := c.written
		if c.wait(ctx, min(c.length, from+int64(c.s.config.TokensPerEvent))) != nil {
			return
		}
		if c.emit(ctx, voice.part(c.text(from))) != nil {
			return
		}
		c.events++
	}
	if c.emit(ctx, voice.close()) != nil {
		return
	}
	if c.elements {
		// Who has all elements needs no more.
		_, _ = c.w.Write([]byte("]"))
	}
	c.record.Outcome = Served
}

// wait writes on, with pings in a silence that grows long.
func (c *call) wait(ctx context.Context, n int64) error {
	for c.s.config.API == Anthropic && c.due(n)-c.sent > pingAfter {
		clock := c.s.config.Clock
		if err := clock.Sleep(ctx, c.sent+pingAfter-clock.Now()); err != nil {
			break
		}
		if err := c.send(ping); err != nil {
			return err
		}
	}
	return c.write(ctx, n)
}

var ping = event{"ping", map[string]any{"type": "ping"}}

// emit sends events, where no fault is due before them.
func (c *call) emit(ctx context.Context, events []event) error {
	if c.events == c.fault.After {
		if err := c.fail(ctx); err != nil {
			return err
		}
	}
	for _, e := range events {
		if err := c.send(e); err != nil {
			return err
		}
	}
	return nil
}

// fail is the fault inside a stream.
func (c *call) fail(ctx context.Context) error {
	switch c.fault.Kind {
	case Spoil:
		c.record.Outcome, c.record.Cause = Spoilt, c.fault.Cause
		if err := c.send(c.spoilt()); err != nil {
			return err
		}
		return errStopped
	case Break:
		c.breakOff()
	case Hang:
		if err := http.NewResponseController(c.w).Flush(); err != nil {
			return fmt.Errorf("flush a stream: %w", err)
		}
		<-ctx.Done()
		return ctx.Err()
	case Refuse:
	}
	return nil
}

// spoilt is the error as an event.
func (c *call) spoilt() event {
	api := c.s.config.API
	r := refusals[api][c.fault.Cause]
	message := denial{cause: c.fault.Cause}.message(r, c.record.Model, c.s.config.Start, c.record.Arrived)
	body := r.body(api, c.fault.Wait, message, c.id)
	switch {
	case api == Anthropic:
		return event{"error", body}
	case api == Bedrock:
		return event{exception, body}
	case c.what == responses:
		return event{"error", map[string]any{"type": "error", "code": r.code, "message": r.message, "param": nil}}
	default:
		return event{"", body}
	}
}

// send writes one event out.
func (c *call) send(e event) error {
	data, ok := e.data.(string)
	if !ok {
		encoded, err := json.Marshal(e.data)
		if err != nil {
			return fmt.Errorf("encode an event: %w", err)
		}
		data = string(encoded)
	}
	if _, err := c.w.Write(c.framed(e, data)); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	if err := http.NewResponseController(c.w).Flush(); err != nil {
		return fmt.Errorf("flush a stream: %w", err)
	}
	c.sent = c.s.config.Clock.Now()
	return nil
}
