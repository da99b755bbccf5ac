// Package capped bounds how many connections of a listener are open at once.
package capped

import (
	"container/list"
	"net"
	"sync"
)

// Crowd counts the connections that are open at once. When there is no room for
// one more, the oldest that has not begun to speak makes some: whoever only
// connects can't keep those out who have something to say. It is safe for
// concurrent use.
type Crowd struct {
	most int

	mu sync.Mutex
	// in has every connection that counts, with its place among the silent ones,
	// or nil for one that has spoken. It never has more than most.
	in     map[net.Conn]*list.Element
	silent list.List
}

// NewCrowd makes room for most connections, at least 1.
func NewCrowd(most int) *Crowd {
	return &Crowd{most: most, in: map[net.Conn]*list.Element{}}
}

// Enter counts c, which is silent. It returns the connection that has to be
// closed for that, if any: one that was silent for longer and no longer counts,
// or c itself where all the others have spoken.
func (w *Crowd) Enter(c net.Conn) (out net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.in) >= w.most {
		oldest := w.silent.Front()
		if oldest == nil {
			return c
		}
		out, _ = w.silent.Remove(oldest).(net.Conn)
		delete(w.in, out)
	}
	w.in[c] = w.silent.PushBack(c)
	return out
}

// Spoke notes that c has begun to speak: it stays until it leaves.
func (w *Crowd) Spoke(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if place := w.in[c]; place != nil {
		w.silent.Remove(place)
		w.in[c] = nil
	}
}

// Leave gives the place of c back, once.
func (w *Crowd) Leave(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if place := w.in[c]; place != nil {
		w.silent.Remove(place)
	}
	delete(w.in, c)
}

// prefaceLen is how many bytes a client sends before its first frame of HTTP/2.
const prefaceLen = 24

// Listen bounds the connections that a listener for HTTP/2 has open at once,
// as Crowd does: one has spoken when as many bytes as the preface has were read
// from it. What has to go is closed at once: to let it wait would look to its
// client like a node that hangs. closed is called for each; it may be nil.
func Listen(l net.Listener, most int, closed func()) net.Listener {
	if closed == nil {
		closed = func() {}
	}
	return &capped{Listener: l, crowd: NewCrowd(most), closed: closed}
}

type capped struct {
	net.Listener
	crowd  *Crowd
	closed func()
}

func (l *capped) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &cappedConn{Conn: conn, crowd: l.crowd}
		out := l.crowd.Enter(c)
		if out != nil {
			l.closed()
			_ = out.Close()
		}
		if out != net.Conn(c) {
			return c, nil
		}
	}
}

type cappedConn struct {
	net.Conn
	crowd *Crowd
	// read is how many bytes of the preface were read. Only the reader has it.
	read int
}

// Read reads; the end of the preface is when the connection has spoken.
func (c *cappedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.read < prefaceLen {
		if c.read += n; c.read >= prefaceLen {
			c.crowd.Spoke(c)
		}
	}
	return n, err
}

// Close gives the place back.
func (c *cappedConn) Close() error {
	c.crowd.Leave(c)
	return c.Conn.Close()
}
