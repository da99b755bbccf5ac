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
	"strings"
	"sync"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/client/incident"
)

// gateway is one process, and what it has said of itself.
type gateway struct {
	name    string
	clock   *clock
	log     *os.File
	process *bench.Process
	// serving is closed when it listens at address.
	serving chan struct{}
	address string

	mu sync.Mutex
	// rest is the line that has not ended, and raised and over when alerts were.
	rest   []byte
	raised []time.Duration
	over   []time.Duration
}

// What is looked for in its log.
var (
	listens = regexp.MustCompile(`\bserving: listen=(\S+)`)
	alerts  = regexp.MustCompile(`\bALERT: kind=` + incident.Kind)
	ends    = regexp.MustCompile(`\bRESOLVED: kind=` + incident.Kind)
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
		g.readLocked(line)
		g.rest = rest
	}
}

func (g *gateway) readLocked(line []byte) {
	switch where := listens.FindSubmatch(line); {
	case where != nil && g.address == "":
		g.address = string(where[1])
		close(g.serving)
	case alerts.Match(line):
		g.raised = append(g.raised, g.clock.Now())
	case ends.Match(line):
		g.over = append(g.over, g.clock.Now())
	}
}

// alerts are when it has raised some, and when these were over.
func (g *gateway) alerts() (raised, over []time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append(raised, g.raised...), append(over, g.over...)
}

// startGateway starts one with a file of its own, and does not wait for it.
func (s *Stage) startGateway(number int, text string) (*gateway, error) {
	name := fmt.Sprint("gateway-", number+1)
	g := &gateway{name: name, clock: s.clock, serving: make(chan struct{})}
	file := filepath.Join(s.config.Dir, name+".yaml")
	if err := os.WriteFile(file, []byte(text+"\nclient: "+name+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write the file of %s: %w", name, err)
	}
	var err error
	if g.log, err = os.Create(filepath.Join(s.config.Dir, name+".log")); err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	command := []string{
		s.config.Binary, "gateway", "--config", file, "--listen", "127.0.0.1:0", "--endpoints",
		strings.Join(s.endpoints(), ","),
	}
	if s.network != nil {
		command = append(s.network.Wrap(s.here()), command...)
	}
	g.process, err = bench.StartProcess(bench.Program{Path: command[0], Args: command[1:], Log: g})
	if err != nil {
		return nil, errors.Join(err, g.log.Close())
	}
	return g, nil
}

// ready waits until it listens.
func (g *gateway) ready(ctx context.Context) error {
	select {
	case <-g.serving:
		return nil
	case <-g.process.Ended():
		text, _ := os.ReadFile(g.log.Name())
		return fmt.Errorf("%s ended: %s", g.name, text)
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", g.name, ctx.Err())
	}
}

// close ends it.
func (g *gateway) close() error {
	g.process.Kill()
	return g.log.Close()
}

var _ io.Writer = (*gateway)(nil)
