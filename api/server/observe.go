package server

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/api/server/convert"
	"github.com/quorlease/quorlease/api/server/overview"
	"github.com/quorlease/quorlease/cluster/events"
)

// eventsService is the service Events.
type eventsService struct {
	quorleasev1.UnimplementedEventsServer
	server *Server
}

// Watch streams what happens on this node.
func (e *eventsService) Watch(
	r *quorleasev1.EventsWatchRequest, stream grpc.ServerStreamingServer[quorleasev1.EventsWatchResponse],
) error {
	// The headers say that the subscription stands: nothing that happens from here
	// on is missed.
	started := func() error { return stream.SendHeader(nil) }
	return e.server.watch(stream.Context(), r, Watcher{started, stream.Send})
}

// Watcher takes what Watch has to say.
type Watcher struct {
	// Started is called once, before anything is sent: the subscription stands.
	Started func() error
	// Send is called for each event.
	Send func(*quorleasev1.EventsWatchResponse) error
}

// Watch streams events to a caller that did not come through gRPC, under the
// rights of Events.Watch. It returns when the watcher fails, when ctx ends, and
// when everything was sent that is kept unless r says follow. The error is an
// *Error.
func (s *Server) Watch(ctx context.Context, r *quorleasev1.EventsWatchRequest, to Watcher) error {
	return s.streamed(ctx, "/quorlease.v1.Events/Watch", func(ctx context.Context) error { return s.watch(ctx, r, to) })
}

// Overview shows pictures to a caller that did not come through gRPC, under the rights
// of Overview.Watch, as long as that one likes, or without follow one. The error is an
// *Error.
func (s *Server) Overview(
	ctx context.Context, r *quorleasev1.OverviewWatchRequest, follow bool, send func(*overview.Shown) error,
) error {
	return s.streamed(ctx, "/quorlease.v1.Overview/Watch", func(ctx context.Context) error {
		if follow {
			return s.overview.Follow(ctx, r, send)
		}
		shown, err := s.overview.Now(ctx, r)
		if err != nil {
			return err
		}
		return send(shown)
	})
}

// streamed is stream for what did not come through gRPC.
func (s *Server) streamed(ctx context.Context, name string, serve func(context.Context) error) (err error) {
	defer func() { err = s.failure(name, recover(), err) }()
	if ctx, err = s.admit(ctx, name); err != nil {
		return err
	}
	if !s.begin() {
		return errOverloadedStreams
	}
	defer s.end()
	return serve(ctx)
}

func (s *Server) watch(ctx context.Context, r *quorleasev1.EventsWatchRequest, to Watcher) error {
	subscription, err := s.events.Subscribe(r.FromIndex)
	if err != nil {
		return err
	}
	if err := to.Started(); err != nil {
		return err
	}
	ctx, cancel := s.untilDrained(ctx)
	defer cancel()
	for {
		event, ok, err := subscription.TryNext()
		if err == nil && !ok {
			if !r.GetFollow() {
				return nil
			}
			event, err = subscription.Next(ctx)
		}
		switch {
		case errors.Is(err, events.ErrClosed), err != nil && s.isDraining():
			return errDraining
		case err != nil:
			return err
		}
		if err := to.Send(convert.EventAnswer(event)); err != nil {
			return err
		}
	}
}
