package server

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc/peer"
)

// Role is what an identity may do. A higher one may do all that a lower one may.
type Role int

// The roles.
const (
	// Nobody may do nothing.
	Nobody Role = iota
	// Client may ask for admission and look at its answer.
	Client
	// Operator may see and change everything.
	Operator
)

// Identity is who calls.
type Identity struct {
	// Name is that of the credential; it owns the leases that it acquires. Empty
	// for the operator, who may act on any lease.
	Name string
	Role Role
}

// Identify says who is at the other end of a connection. A credential that is
// missing or wrong is an error. It is called for every call.
type Identify func(*peer.Peer) (Identity, error)

// Loopback lets whoever is on this machine be the operator, and nobody else in.
func Loopback(p *peer.Peer) (Identity, error) {
	if tcp, ok := p.Addr.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return Identity{Role: Operator}, nil
	}
	return Identity{}, fmt.Errorf("%w: %v is not on this machine", errUnauthenticated, p.Addr)
}

// Anyone lets everybody be the operator. It is what --insecure means.
func Anyone(*peer.Peer) (Identity, error) { return Identity{Role: Operator}, nil }

// method is what authorize knows of one method.
type method struct {
	// least is the lowest role that may call it.
	least Role
	// patience is how long a call without a deadline may take. Zero for streams,
	// which last as long as their caller likes.
	patience time.Duration
}

// How long a call waits whose caller names no deadline.
const (
	admissionPatience = 2 * time.Second
	operatorPatience  = 10 * time.Second
)

// Pseudo-methods for what is served over HTTP only.
const (
	MethodMetrics = "http/metrics"
	MethodHealth  = "http/health"
)

// methods is the allow-list: what is not in it is refused. It is keyed on the
// names under which methods are registered, which a request can't choose: a path
// that looks almost like one reaches no handler. New checks that every
// registered method is here.
var methods = map[string]method{
	"/quorlease.v1.Admission/Acquire": {Client, admissionPatience},
	"/quorlease.v1.Admission/Settle":  {Client, admissionPatience},
	"/quorlease.v1.Admission/Release": {Client, admissionPatience},
	"/quorlease.v1.Admission/Renew":   {Client, admissionPatience},
	"/quorlease.v1.Admission/Report":  {Client, admissionPatience},
	"/quorlease.v1.Admission/Peek":    {Client, admissionPatience},
	"/quorlease.v1.Admission/Session": {Client, 0},

	"/quorlease.v1.Limits/Apply":   {Operator, operatorPatience},
	"/quorlease.v1.Limits/List":    {Operator, operatorPatience},
	"/quorlease.v1.Limits/Delete":  {Operator, operatorPatience},
	"/quorlease.v1.Limits/Inspect": {Operator, operatorPatience},
	"/quorlease.v1.Limits/Adjust":  {Operator, operatorPatience},
	"/quorlease.v1.Limits/History": {Operator, operatorPatience},
	"/quorlease.v1.Limits/Keys":    {Operator, operatorPatience},

	"/quorlease.v1.Cluster/State":              {Operator, operatorPatience},
	"/quorlease.v1.Cluster/Add":                {Operator, operatorPatience},
	"/quorlease.v1.Cluster/Remove":             {Operator, operatorPatience},
	"/quorlease.v1.Cluster/Promote":            {Operator, operatorPatience},
	"/quorlease.v1.Cluster/Demote":             {Operator, operatorPatience},
	"/quorlease.v1.Cluster/TransferLeadership": {Operator, operatorPatience},
	"/quorlease.v1.Cluster/Status":             {Operator, operatorPatience},
	"/quorlease.v1.Clients/List":               {Operator, operatorPatience},
	"/quorlease.v1.UsageBook/Query":            {Operator, operatorPatience},
	"/quorlease.v1.Events/Watch":               {Operator, 0},
	"/quorlease.v1.Overview/Watch":             {Operator, 0},

	"/grpc.health.v1.Health/Check": {Operator, operatorPatience},
	"/grpc.health.v1.Health/List":  {Operator, operatorPatience},
	"/grpc.health.v1.Health/Watch": {Operator, 0},

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      {Operator, 0},
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": {Operator, 0},

	MethodMetrics: {Operator, 0},
	// A supervisor that has no credential must see whether the process is alive.
	MethodHealth: {Nobody, 0},
}

// authorize says whether id may call a method.
func authorize(name string, id Identity) error {
	m, listed := methods[name]
	if !listed {
		return fmt.Errorf("%w: %q is not a method", errNoRight, name)
	}
	if id.Role < m.least {
		return fmt.Errorf("%w: %q needs another role", errNoRight, name)
	}
	return nil
}

// identityKey is the context's key for the Identity of a call.
type identityKey struct{}

func identityOf(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}

// admit identifies the caller of a method and lets it in, or says why not.
func (s *Server) admit(ctx context.Context, name string) (context.Context, error) {
	id := Identity{}
	if methods[name].least > Nobody {
		p, ok := peer.FromContext(ctx)
		if !ok {
			return nil, fmt.Errorf("%w: there is no peer", errUnauthenticated)
		}
		var err error
		if id, err = s.config.Identify(p); err != nil {
			return nil, err
		}
	}
	if err := authorize(name, id); err != nil {
		return nil, err
	}
	return context.WithValue(ctx, identityKey{}, id), nil
}

// author is how the history calls who made a change.
func author(ctx context.Context) string { return cmp.Or(identityOf(ctx).Name, "operator") }
