package real

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// share is the line of a gateway's figures that says which part of a limit it has.
var share = regexp.MustCompile(`(?m)^quorlease_client_share_ratio\{.*\} (\S+)$`)

// figuresMax bounds how much is read of them.
const figuresMax = 4 << 20

// Shared says whether every gateway has a part of every limit of which it was promised one, and
// of one at least, for the time in which nobody answers it.
func (s *Stage) Shared(ctx context.Context) (bool, error) {
	for _, g := range s.gateways {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.Admin()+"/metrics", nil)
		if err != nil {
			return false, fmt.Errorf("look at %s: %w", g.name, err)
		}
		answer, err := s.programs.Do(request)
		if err != nil {
			return false, fmt.Errorf("look at %s: %w", g.name, err)
		}
		text, err := io.ReadAll(io.LimitReader(answer.Body, figuresMax))
		_ = answer.Body.Close()
		if err != nil {
			return false, fmt.Errorf("look at %s: %w", g.name, err)
		}
		parts := share.FindAllSubmatch(text, -1)
		if len(parts) == 0 || slices.ContainsFunc(parts, func(m [][]byte) bool { return string(m[1]) == "0" }) {
			return false, nil
		}
	}
	return true, nil
}

// close ends it.
func (g *gateway) close() error {
	g.Kill()
	return g.log.Close()
}

var _ io.Writer = (*gateway)(nil)
