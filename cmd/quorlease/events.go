package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
)

const eventsLong = `Show what happened, as the node that is asked saw it: one event a line.

Without flags it shows all that the node keeps. --follow starts now and goes on
until it is stopped; with --from it starts in the past. It stays with the node
that it asked first, and ends with an error when that node goes away.`

func newEvents(a *app) *cobra.Command {
	var follow bool
	var from uint64
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show what happened",
		Long:  eventsLong,
		Example: `  quorlease events
  quorlease events --follow -o json
  quorlease events --from 120 --endpoints 127.0.0.1:7102`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			request := &quorleasev1.EventsWatchRequest{Follow: follow}
			if !follow || c.Flags().Changed("from") {
				request.FromIndex = &from
			}
			return a.events(c.Context(), request)
		},
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "go on, starting now")
	cmd.Flags().Uint64Var(&from, "from", 0, "start at this log `index`; 0 is all that is kept")
	return cmd
}

// events opens the watch at the first endpoint that connects. Another node
// keeps other events, so there is no second one.
func (a *app) events(ctx context.Context, request *quorleasev1.EventsWatchRequest) error {
	nodes, err := ask.Connect(a.endpoints, a.timeout)
	if err != nil {
		return err
	}
	defer nodes.Close()
	conn, addr, err := nodes.First(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Without --follow the node has the usual time to give what it keeps.
	if !request.GetFollow() {
		timer := time.AfterFunc(a.timeout, func() { cancel(context.DeadlineExceeded) })
		defer timer.Stop()
	}
	stream, err := quorleasev1.NewEventsClient(conn).Watch(ctx, request)
	if err != nil {
		return ask.Explain(err)
	}
	return a.copyEvents(ctx, addr, stream)
}

func (a *app) copyEvents(
	ctx context.Context, addr string, stream grpc.ServerStreamingClient[quorleasev1.EventsWatchResponse],
) error {
	for {
		response, err := stream.Recv()
		if err != nil {
			return a.watchEnded(ctx, addr, err)
		}
		if err := a.printEvent(response.GetEvent()); err != nil {
			return err
		}
	}
}

// watchEnded says why a watch ended, where that is worth an error. That it was
// interrupted is not: this is how a watch that follows ends.
func (a *app) watchEnded(ctx context.Context, addr string, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fmt.Errorf("%s did not give all its events within %s; --timeout makes it longer", addr, a.timeout)
	case errors.Is(err, io.EOF), errors.Is(context.Cause(ctx), context.Canceled):
		return nil
	case ask.Decided(err):
		return ask.Explain(err)
	default:
		return fmt.Errorf("%s ended the watch: %w", addr, ask.Explain(err))
	}
}

func (a *app) printEvent(e *quorleasev1.Event) error {
	if a.format == formatJSON {
		return a.printLine(e)
	}
	fields := []string{
		e.GetTime().AsTime().UTC().Format("2006-01-02T15:04:05.000Z"),
		fmt.Sprintf("%8d", e.GetIndex()),
		fmt.Sprintf("%-8s", e.GetSeverity()),
		e.GetKind(),
	}
	for _, pair := range [][2]string{{"limit", e.GetLimit()}, {"client", e.GetClient()}, {"value", e.GetValue()}} {
		if pair[1] != "" {
			fields = append(fields, pair[0]+"="+exit.Printable(pair[1]))
		}
	}
	if e.GetText() != "" {
		fields = append(fields, exit.Printable(e.GetText()))
	}
	return a.write([]byte(strings.Join(fields, "  ") + "\n"))
}
