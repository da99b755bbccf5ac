package bench

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
)

// GatewayConfig says how to start a gateway.
type GatewayConfig struct {
	// Binary is the path of a built quorlease.
	Binary string
	// Name is the gateway's own, and Text its file, which is written to Dir.
	Name, Dir, Text string
	// Endpoints are the nodes that it asks. Nil: Args say whom.
	Endpoints []string
	// Args go behind its arguments.
	Args []string
	// Wrap are the words of a command that runs it, such as one that puts it on a host.
	Wrap []string
	// Log receives what it prints, by one goroutine at a time. Nil: discarded.
	Log io.Writer
}

// Gateway is a process of "quorlease gateway" on free ports of loopback. Its methods may be
// called from several goroutines.
type Gateway struct {
	*Process
	name string
	// serving is closed when it listens.
	serving chan struct{}

	mu sync.Mutex
	// rest is what it has printed so far, until it listens.
	rest          []byte    // guarded by mu
	listen, admin string    // guarded by mu
	log           io.Writer // guarded by mu
}

// serves is the line that says where it listens.
var serves = regexp.MustCompile(`\bserving: listen=(\S+) .*\badmin=(\S+).*\n`)

// StartGateway starts one, and does not wait for it.
func StartGateway(c GatewayConfig) (*Gateway, error) {
	file := filepath.Join(c.Dir, c.Name+".yaml")
	if err := os.WriteFile(file, []byte(c.Text+"\nclient: "+c.Name+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write the file of %s: %w", c.Name, err)
	}
	g := &Gateway{name: c.Name, serving: make(chan struct{}), log: c.Log}
	command := append(c.Wrap[:len(c.Wrap):len(c.Wrap)], c.Binary, "gateway", "--config", file,
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	if len(c.Endpoints) > 0 {
		command = append(command, "--endpoints", strings.Join(c.Endpoints, ","))
	}
	command = append(command, c.Args...)
	var err error
	g.Process, err = StartProcess(Program{Path: command[0], Args: command[1:], Log: (*printed)(g)})
	return g, err
}

// printed takes in what a gateway prints.
type printed Gateway

// Write looks for where it listens.
func (p *printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listen == "" {
		p.rest = append(p.rest, text...)
		if where := serves.FindSubmatch(p.rest); where != nil {
			p.listen, p.admin = string(where[1]), string(where[2])
			close(p.serving)
		}
	}
	if p.log == nil {
		return len(text), nil
	}
	return p.log.Write(text)
}

// Listening waits until it listens.
func (g *Gateway) Listening(ctx context.Context) error {
	select {
	case <-g.serving:
		return nil
	case <-g.Ended():
		g.mu.Lock()
		defer g.mu.Unlock()
		return fmt.Errorf("%s has ended before it listened: %s", g.name, bytes.TrimSpace(g.rest))
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", g.name, errors.Join(ctx.Err(), context.Cause(ctx)))
	}
}

// Address is where programs ask it, and Admin where its figures are; empty before it listens.
func (g *Gateway) Address() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listen
}

// Admin is where its figures are.
func (g *Gateway) Admin() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.admin
}
