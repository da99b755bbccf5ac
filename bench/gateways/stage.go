// Package gateways plays storms against whole gateways: the real proxy, the real
// client and real nodes, with a simulated provider behind them.
//
// A scenario is written once and played on a Stage, of which there are two: one
// in virtual time, in which everything is in one process (bench/gateways/bubble),
// and one in real time, sixty times as fast, with processes that can be killed
// (bench/gateways/real).
package gateways

import (
	"context"
	"net/http"
	"time"

	"github.com/quorlease/quorlease/bench/upstream"
)

// Setting is what stands on a stage.
type Setting struct {
	// Limits is the limits file of the nodes. What it says of times is the process's:
	// a rate that is a minute's in the scenario is a second's where Pace is 60.
	Limits string
	// File is a gateway's file with the provider at that address, without the keys that
	// differ from gateway to gateway: listen, admin, endpoints and client.
	File func(upstream string) string
	// Gateways and Nodes are how many there are, at least one.
	Gateways, Nodes int
	// Provider is what stands behind the gateways. Its Clock is the stage's.
	Provider upstream.Config
	// Faults are what goes wrong at the provider from the beginning.
	Faults []upstream.Fault
}

// Stage is where a scenario is played. It may be used by many goroutines.
type Stage interface {
	// Clock is the scenario's time: 0 when everything is ready.
	upstream.Clock
	Front
	Nodes
	// KillGateway ends a gateway with everything that it holds.
	KillGateway(gateway int) error
}

// Front is what programs see.
type Front interface {
	// Pace is how many times as fast as the process's the scenario's time goes.
	Pace() int
	// Send sends one request through a gateway, reads the answer to its end, and says
	// what it was. An error says that nothing was answered, such as by a gateway that
	// is dead.
	Send(ctx context.Context, gateway int, r Request) (Answer, error)
	// Provider is what stands behind the gateways, with its ledger and faults.
	Provider() *upstream.Server
	// Alerts are how many alerts of lost quorum the gateways have raised so far, and
	// when the last one was.
	Alerts() (n int, last time.Duration)
}

// Nodes are what gateways ask, counted from 0.
type Nodes interface {
	// KillNode ends a node without warning, and StartNode starts one that was ended.
	KillNode(node int) error
	StartNode(ctx context.Context, node int) error
	// Leader is the node that leads.
	Leader(ctx context.Context) (int, error)
	// Cut takes a node's connections with the other nodes away, Heal gives them back.
	Cut(node int) error
	Heal(node int) error
}

// KeyEnv is the variable that a gateway's file may name for the provider's key.
const KeyEnv = "QUORLEASE_SIMULATED_KEY"

// Operator is a Stage on which a person can do something about limits. Not every one is.
type Operator interface {
	// Apply puts a limits file in force.
	Apply(ctx context.Context, limits string) error
	// Clear opens a key again that a provider's spend cap has blocked.
	Clear(ctx context.Context, limit, key string) error
	// SpendCaps are how many alerts of a spend cap the gateways have raised so far, together.
	SpendCaps() int
}

// Request is what a program sends.
type Request struct {
	// Path and Body are of the provider's form. Header may be nil.
	Path   string
	Header http.Header
	Body   []byte
}

// Answer is what a program was told.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Took is how long it took, in the scenario's time.
	Took time.Duration
}
