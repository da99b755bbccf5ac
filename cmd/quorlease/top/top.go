// Package top shows the cluster, and who asks it, in a terminal.
//
// A feed keeps a stream of pictures open at whichever node answers. The model
// holds the last picture and what the keys have chosen, and the view is a
// function of the model. Every text that comes from a node, and so from a
// client, is cleaned in one place, where a picture becomes rows: no name can
// steer the terminal.
package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
	"github.com/quorlease/quorlease/cmd/quorlease/ask"
	"github.com/quorlease/quorlease/cmd/quorlease/exit"
	"github.com/quorlease/quorlease/cmd/quorlease/setting"
)

// Long is what help says of the command.
const Long = `Show what the page of a node shows, in a terminal: the health of the cluster,
the clients with the most retries and what is left of their budgets, the limits
with their levels, rates and queues, the nodes, the alerts that fire, and how
often providers throttled against how often they did not.

It stays with one node. When that goes away it says so, keeps the last picture,
marked as stale, and goes on with another endpoint.

  tab, left, right   the next pane, or the one before
  up, down           rows of the pane that has the focus
  s                  sort it by another column
  d                  every dimension of the limits, or the one that binds
  /                  show what contains a text; esc shows all again
  p                  hold the picture
  ?                  all keys
  q                  quit

--once prints one picture, as text or as JSON, and needs no terminal. NO_COLOR in
the environment leaves colours out.`

// Example is what help gives as examples.
const Example = `  quorlease top
  quorlease top --once
  quorlease top --once --top 5 -o json`

// maxClients bounds --top.
const maxClients = 100

// Options are those of the command.
type Options struct {
	// Once says that one picture is all that is wanted.
	Once bool
	// Clients is how many are shown at most, 1 to 100.
	Clients uint32

	// Endpoints are client addresses, tried in this order; Timeout is how long each
	// may take to connect. Positive.
	Endpoints []string
	Timeout   time.Duration
	// Input and Output have to be a terminal.
	Input  io.Reader
	Output io.Writer
	// LookupEnv reads the environment.
	LookupEnv func(string) (string, bool)
}

// Define makes the flags of the command.
func (o *Options) Define(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Once, "once", false, "print one picture and end")
	flags.Uint32Var(&o.Clients, "top", 20, "show at most this `many` clients, 1 to 100")
	setting.Range(flags, "top", "1 to 100")
}

// Check says what is wrong with the command line. json says that JSON is asked
// for, which is one picture.
func (o *Options) Check(json bool) error {
	switch {
	case o.Clients < 1 || o.Clients > maxClients:
		return exit.Usagef("--top %d is outside 1 to %d", o.Clients, maxClients)
	case json && !o.Once:
		return exit.Usagef("--output json shows one picture: say --once")
	default:
		return nil
	}
}

func (o *Options) request() *quorleasev1.OverviewWatchRequest {
	return &quorleasev1.OverviewWatchRequest{Top: o.Clients}
}

// Picture is the call that asks a node for one picture.
func (o *Options) Picture(
	parent context.Context, conn grpc.ClientConnInterface,
) (*quorleasev1.OverviewWatchResponse, error) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	stream, err := quorleasev1.NewOverviewClient(conn).Watch(ctx, o.request())
	if err != nil {
		return nil, err
	}
	answer, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil, errEnded
	}
	return answer, err
}

// Run shows pictures until somebody quits or the context is done. Its errors are
// those of a command line.
func (o *Options) Run(ctx context.Context) error {
	if !isTerminal(o.Input) || !isTerminal(o.Output) {
		return exit.Usagef("top draws on a terminal, and this is none; --once prints one picture")
	}
	// What is wrong with an endpoint is said before anything is drawn.
	nodes, err := ask.Connect(o.Endpoints, o.Timeout)
	if err != nil {
		return err
	}
	nodes.Close()
	return o.draw(ctx, o.connect)
}

func isTerminal(stream any) bool {
	file, ok := stream.(term.File)
	return ok && term.IsTerminal(file.Fd())
}

// framesPerSecond is how often the terminal is written to at most: more than
// pictures and key strokes come, little enough for a slow line.
const framesPerSecond = 20

// draw runs the program and its feed, and returns when both have ended.
func (o *Options) draw(ctx context.Context, connect dial, more ...tea.ProgramOption) error {
	program := tea.NewProgram(newModel(o.colours()), append([]tea.ProgramOption{
		tea.WithInput(o.Input), tea.WithOutput(o.Output), tea.WithFPS(framesPerSecond),
		// Signals end the context.
		tea.WithoutSignalHandler(),
	}, more...)...)
	defer context.AfterFunc(ctx, program.Quit)()
	feeding, cancel := context.WithCancel(ctx)
	f := &feed{endpoints: o.Endpoints, request: o.request(), connect: connect, send: program.Send}
	var running sync.WaitGroup
	running.Go(func() { f.run(feeding) })
	running.Go(func() { f.tick(feeding) })
	_, err := program.Run()
	cancel()
	running.Wait()
	if err != nil {
		return fmt.Errorf("draw on the terminal: %w", err)
	}
	return nil
}

// colours says whether there may be any: NO_COLOR is absent or empty.
func (o *Options) colours() bool {
	value, _ := o.LookupEnv("NO_COLOR")
	return value == ""
}
