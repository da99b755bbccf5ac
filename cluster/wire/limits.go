package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Limits bound a Raft connection, which has none of its own on the accepting
// side (R39) and one that is far too long while a snapshot is sent (R21). A
// zero field means the default.
type Limits struct {
	// Stall is how long a message may make no progress, in either direction,
	// once it has begun. Default 10 s.
	Stall time.Duration
	// Answer is how long a dialer waits for an answer: a follower restores a
	// snapshot before it answers. Default 2 min.
	Answer time.Duration
	// Idle is how long an accepted connection may rest between two messages.
	// Default 10 min.
	Idle time.Duration
	// Message bounds the bytes of one request other than a snapshot. Default
	// 64 MiB, twice the largest that Raft sends with our entries.
	Message int64
	// Snapshot bounds the bytes of one request that carries a snapshot.
	// Default 4 GiB.
	Snapshot int64
}

// DefaultLimits are the limits that zero fields stand for.
func DefaultLimits() Limits {
	return Limits{
		Stall: 10 * time.Second, Answer: 2 * time.Minute, Idle: 10 * time.Minute,
		Message: 64 << 20, Snapshot: 4 << 30,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	if l.Stall > 0 {
		d.Stall = l.Stall
	}
	if l.Answer > 0 {
		d.Answer = l.Answer
	}
	if l.Idle > 0 {
		d.Idle = l.Idle
	}
	if l.Message > 0 {
		d.Message = l.Message
	}
	if l.Snapshot > 0 {
		d.Snapshot = l.Snapshot
	}
	return d
}

const (
	// rpcInstallSnapshot is the first byte of Raft's request that carries a
	// snapshot, the only one that may be large.
	rpcInstallSnapshot = 2
	// writeChunk is how much must get through within one Stall.
	writeChunk = 64 << 10
)

// limited is a Raft connection with limits. Raft sends one request at a time
// on a connection and then waits for its answer, so a message begins with the
// first byte in one direction after bytes in the other.
type limited struct {
	limits Limits
	// dialed is false at the accepting end.
	dialed bool
	// redial replaces a connection that died while it rested. Nil: never.
	redial func(deadline time.Time) (net.Conn, error)

	mu     sync.Mutex
	conn   net.Conn
	closed bool
	// Deadlines that the owner has set. Zero: none.
	readBy, writeBy time.Time
	// reading: the last bytes moved were read, and so many since the first.
	reading  bool
	moved    int64
	snapshot bool
}

func limit(conn net.Conn, l Limits, dialed bool, redial func(time.Time) (net.Conn, error)) *limited {
	// A dialer writes first and an acceptor reads first: both are at rest.
	return &limited{conn: conn, limits: l.withDefaults(), dialed: dialed, redial: redial, reading: dialed}
}

// Read reads as net.Conn does, within the limits.
func (c *limited) Read(p []byte) (int, error) {
	conn, by, idle := c.beforeRead(time.Now())
	_ = conn.SetReadDeadline(by)
	n, err := conn.Read(p)
	if n > 0 {
		if tooLarge := c.afterRead(p[:n]); tooLarge != nil {
			return 0, tooLarge
		}
	}
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return n, c.expired(c.ownerReadBy(), by, idle, err)
	}
	return n, err
}

// beforeRead picks the deadline; idle says that none has begun.
func (c *limited) beforeRead(now time.Time) (conn net.Conn, by time.Time, idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := c.limits.Stall
	switch atRest := !c.reading || c.moved == 0; {
	case atRest && c.dialed:
		wait = c.limits.Answer
	case atRest:
		wait, idle = c.limits.Idle, true
	}
	return c.conn, earlier(now.Add(wait), c.readBy), idle
}

func (c *limited) afterRead(p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reading {
		c.reading, c.moved, c.snapshot = true, 0, false
	}
	if c.moved == 0 {
		c.snapshot = !c.dialed && p[0] == rpcInstallSnapshot
	}
	c.moved += int64(len(p))
	most := c.limits.Message
	if c.snapshot {
		most = c.limits.Snapshot
	}
	if c.moved > most {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, most)
	}
	return nil
}

// expired tells our limit from the owner's deadline. An idle connection ends
// as if the peer had closed it: nothing was lost.
func (c *limited) expired(owner, by time.Time, idle bool, err error) error {
	switch {
	case by.Equal(owner):
		return err
	case idle:
		return io.EOF
	}
	return fmt.Errorf("%w: %w", ErrStalled, err)
}

// Write writes as net.Conn does, within the limits: what is written in pieces
// may take as long as it needs while every piece gets through.
func (c *limited) Write(p []byte) (int, error) {
	if err := c.beforeWrite(time.Now()); err != nil {
		return 0, err
	}
	written := 0
	for written < len(p) {
		conn, owner := c.forWrite()
		by := earlier(time.Now().Add(c.limits.Stall), owner)
		_ = conn.SetWriteDeadline(by)
		n, err := conn.Write(p[written:min(len(p), written+writeChunk)])
		written += n
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = c.expired(owner, by, false, err)
			}
			return written, err
		}
	}
	return written, nil
}

// beforeWrite marks the turn and, where a request is about to begin on a
// connection that died while it rested, replaces it: nothing of the request
// has been sent, so nothing can happen twice. Without this, each pooled
// connection to a peer that restarted would cost one request, and a vote lost
// to it costs an election.
func (c *limited) beforeWrite(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	begins := c.reading
	c.reading, c.moved = false, 0
	if !begins || c.redial == nil || isAlive(c.conn) {
		return nil
	}
	conn, err := c.redial(earlier(now.Add(c.limits.Stall), c.writeBy))
	if err != nil {
		return fmt.Errorf("replace a dead connection: %w", err)
	}
	_ = c.conn.Close()
	c.conn = conn
	return nil
}

func (c *limited) forWrite() (net.Conn, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn, c.writeBy
}

func (c *limited) ownerReadBy() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readBy
}

// Close ends the connection.
func (c *limited) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.conn.Close()
}

// SetDeadline sets both deadlines of the owner; the limits go on beside them.
func (c *limited) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readBy, c.writeBy = t, t
	return c.conn.SetDeadline(t)
}

// SetReadDeadline sets the owner's deadline for reading.
func (c *limited) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readBy = t
	return c.conn.SetReadDeadline(t)
}

// SetWriteDeadline sets the owner's deadline for writing.
func (c *limited) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeBy = t
	return c.conn.SetWriteDeadline(t)
}

// LocalAddr is the address at this end.
func (c *limited) LocalAddr() net.Addr { return c.current().LocalAddr() }

// RemoteAddr is the address at the other end.
func (c *limited) RemoteAddr() net.Addr { return c.current().RemoteAddr() }

func (c *limited) current() net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn
}

// earlier is the earlier of a limit and an owner's deadline, where zero means
// none.
func earlier(limit, owner time.Time) time.Time {
	if owner.IsZero() || limit.Before(owner) {
		return limit
	}
	return owner
}
