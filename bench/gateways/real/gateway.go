package real

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/client/incident"
)

// gateway is one process, and what it has said of itself.
type gateway struct {
	*bench.Gateway
	name  string
	clock *clock
	log   *os.File
	// address is where programs ask it, once it is ready.
	address string

	mu sync.Mutex
	// rest is the line that has not ended, and raised and over when alerts were.
	rest   []byte
	raised []time.Duration
	over   []time.Duration
}

// What is looked for in its log.
var (
	alerts = regexp.MustCompile(`\bALERT: kind=` + incident.Kind)
	ends   = regexp.MustCompile(`\bRESOLVED: kind=` + incident.Kind)
)

// Write takes in what it logs. It is called by one goroutine.
func (g *gateway) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rest = append(g.rest, p...)
	for {
		line, rest, whole := bytes.Cut(g.rest, []byte("\n"))
		if !whole {
			return g.log.Write(p)
		}
		switch {
		case alerts.Match(line):
			g.raised = append(g.raised, g.clock.Now())
		case ends.Match(line):
			g.over = append(g.over, g.clock.Now())
		}
		g.rest = rest
	}
}

// alerts are when it has raised some, and when these were over.
func (g *gateway) alerts() (raised, over []time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append(raised, g.raised...), append(over, g.over...)
}

// startGateway starts one with a file of its own, and does not wait for it.
func (s *Stage) startGateway(number int, text string) (g *gateway, err error) {
	g = &gateway{name: fmt.Sprint("gateway-", number+1), clock: s.clock}
	if g.log, err = os.Create(filepath.Join(s.config.Dir, g.name+".log")); err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", g.name, err)
	}
	c := bench.GatewayConfig{
		Binary: s.config.Binary, Name: g.name, Dir: s.config.Dir, Text: text, Endpoints: s.endpoints(), Log: g,
	}
	if s.network != nil {
		c.Wrap = s.network.Wrap(s.here())
	}
	if g.Gateway, err = bench.StartGateway(c); err != nil {
		return nil, errors.Join(err, g.log.Close())
	}
	return g, nil
}

// ready waits until it listens.
func (g *gateway) ready(ctx context.Context) error {
	if err := g.Listening(ctx); err != nil {
		return err
	}
	g.address = g.Address()
	return nil
}

// close ends it.
func (g *gateway) close() error {
	g.Kill()
	return g.log.Close()
}

var _ io.Writer = (*gateway)(nil)
