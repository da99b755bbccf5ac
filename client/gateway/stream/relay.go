package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Who ended a stream before its end. Errors of Run wrap one of them, and the cause.
var (
	// ErrStopped: the context is done.
	ErrStopped = errors.New("stream stopped")
	// ErrClient: nothing can be written to the client any more.
	ErrClient = errors.New("client is gone")
	// ErrUpstream: nothing can be read from the provider any more.
	ErrUpstream = errors.New("provider is gone")
)

// Relay passes a stream on to a client.
type Relay struct {
	// To gets the frames. It is required.
	To io.Writer
	// Flush makes what was written go out. It is called when the next frame is not there yet,
	// so that a burst of frames costs one. Nil: writing is enough.
	Flush func() error
	// Seen, where it is given, is told of each frame before it is passed on, also of one that
	// the client does not get: the provider has computed it.
	Seen func(Frame)
	// HideUsage is for a client that had not asked for usage where AskUsage has: the event
	// that only reports it is left out, and "usage":null of the others, where their data is one
	// line.
	HideUsage bool

	hide    hide
	written bool
}

// Run passes on what comes until the source ends. It is nil then, and everything was
// flushed.
//
// When ctx is done it ends before the next frame; a read that waits is not ended by it, and
// has to be by its source, as bodies of answers do that belong to a request with that
// context. Whatever ends it, closing the source is left to the caller.
func (r *Relay) Run(ctx context.Context, from *Reader) error {
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ErrStopped, context.Cause(ctx))
		}
		if !from.Ready() {
			if err := r.flush(); err != nil {
				return err
			}
		}
		f, err := from.Next()
		switch {
		case errors.Is(err, io.EOF):
			return r.flush()
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ErrStopped, context.Cause(ctx))
		case err != nil:
			// What was read before it failed has been written, and goes out.
			return errors.Join(fmt.Errorf("%w: %w", ErrUpstream, err), r.flush())
		}
		if err := r.pass(f); err != nil {
			return err
		}
	}
}

func (r *Relay) pass(f Frame) error {
	if r.Seen != nil {
		r.Seen(f)
	}
	raw := f.Raw
	if r.HideUsage {
		raw = r.hide.frame(f)
	}
	if len(raw) == 0 {
		return nil
	}
	r.written = true
	if _, err := r.To.Write(raw); err != nil {
		return fmt.Errorf("%w: %w", ErrClient, err)
	}
	return nil
}

func (r *Relay) flush() error {
	if !r.written || r.Flush == nil {
		return nil
	}
	r.written = false
	if err := r.Flush(); err != nil {
		return fmt.Errorf("%w: %w", ErrClient, err)
	}
	return nil
}
