// Package canon says when two requests ask for the same work, without keeping what
// they ask.
//
// A body of JSON is hashed by its meaning: the order of names, white space, escapes
// and the spelling of numbers change nothing, and everything else does. Whatever is
// not JSON, or is larger or deeper than the bounds, is hashed byte by byte. The hash
// is keyed (HMAC-SHA-256), so that nobody who sees it can try out prompts.
package canon

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"sync"
)

const (
	// KeyMin is the shortest key, in bytes.
	KeyMin = 16
	// VolatileMax is how many names may be volatile, and NameMax how long one is.
	VolatileMax = 64
	NameMax     = 256

	bytesMaxDefault = 8 << 20
	bytesMaxMost    = 64 << 20
	depthMaxDefault = 64
	depthMaxMost    = 1000
	// membersMax is how many members of objects may be open at a time: they are kept
	// until their object ends.
	membersMax = 1 << 16
	// keptMax is the largest buffer that is used again.
	keptMax = 1 << 20
)

// Sum is a keyed hash. Two sums of one Hasher can be compared; those of two with
// different keys can't.
type Sum [16]byte

// String is the sum in hexadecimal.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Sums are what a body hashes to.
type Sums struct {
	// Work leaves out the volatile names: it is what a retry has in common with the
	// request that it repeats.
	Work Sum
	// Exact leaves out nothing: requests with the same one can be given the same
	// answer.
	Exact Sum
	// JSON is false where the bytes were hashed: the body is no JSON, has bytes in it
	// that are no UTF-8, or exceeds a bound.
	JSON bool
}

// Config says how bodies are hashed. The zero value is ready.
type Config struct {
	// Key is the secret, at least KeyMin bytes. Gateways that compare sums need the
	// same one. Nil: one is drawn, and sums mean something in this Hasher only.
	Key []byte
	// Volatile are names that a client may change from one try to the next, in the
	// object that the body is; deeper ones, such as those of a tool's arguments, always
	// count. Nil: Volatile(). Empty: none.
	Volatile []string
	// BytesMax is the largest body that is read as JSON, 1 to 64 MiB. Default 8 MiB.
	BytesMax int
	// DepthMax is how deeply values may be nested, 1 to 1,000. Default 64.
	DepthMax int
}

// Volatile are the names that are volatile unless somebody says otherwise: whom the
// provider is told the work is for, what is only passed through, the seed that a loop
// may draw anew, how the stream ends, and the names that ids of requests go by.
func Volatile() []string {
	return []string{
		"user", "safety_identifier", "metadata", "seed", "stream_options",
		"request_id", "requestId", "client_request_id", "clientRequestId", "trace_id", "idempotency_key",
	}
}

// Hasher hashes bodies. It is safe for concurrent use.
type Hasher struct {
	key      []byte
	volatile map[string]struct{}
	bytesMax int
	depthMax int
	pool     sync.Pool
}

// New returns a Hasher. The error names every field that is out of range.
func New(c Config) (*Hasher, error) {
	if c.BytesMax == 0 {
		c.BytesMax = bytesMaxDefault
	}
	if c.DepthMax == 0 {
		c.DepthMax = depthMaxDefault
	}
	if c.Volatile == nil {
		c.Volatile = Volatile()
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("hasher configuration: %w", err)
	}
	h := &Hasher{
		key: append([]byte(nil), c.Key...), volatile: make(map[string]struct{}, len(c.Volatile)),
		bytesMax: c.BytesMax, depthMax: c.DepthMax,
	}
	if c.Key == nil {
		h.key = make([]byte, sha256.Size)
		if _, err := rand.Read(h.key); err != nil {
			return nil, fmt.Errorf("draw key: %w", err)
		}
	}
	for _, name := range c.Volatile {
		h.volatile[name] = struct{}{}
	}
	h.pool.New = func() any { return &scan{mac: hmac.New(sha256.New, h.key)} }
	return h, nil
}

func (c *Config) validate() error {
	var problems []error
	if c.Key != nil && len(c.Key) < KeyMin {
		problems = append(problems, fmt.Errorf("key: %d bytes, at least %d", len(c.Key), KeyMin))
	}
	if len(c.Volatile) > VolatileMax {
		problems = append(problems, fmt.Errorf("volatile: %d names, at most %d", len(c.Volatile), VolatileMax))
	}
	for i, name := range c.Volatile {
		if name == "" || len(name) > NameMax {
			problems = append(problems, fmt.Errorf("volatile[%d]: %d bytes, 1 to %d", i, len(name), NameMax))
		}
	}
	if c.BytesMax < 1 || c.BytesMax > bytesMaxMost {
		problems = append(problems, fmt.Errorf("bytes max: %d, 1 to %d", c.BytesMax, bytesMaxMost))
	}
	if c.DepthMax < 1 || c.DepthMax > depthMaxMost {
		problems = append(problems, fmt.Errorf("depth max: %d, 1 to %d", c.DepthMax, depthMaxMost))
	}
	return errors.Join(problems...)
}

// Body hashes a request's body in one pass. It keeps nothing of it.
func (h *Hasher) Body(body []byte) Sums {
	s := h.pool.Get().(*scan)
	defer h.release(s)
	if len(body) <= h.bytesMax {
		if sums, ok := s.body(h, body); ok {
			return sums
		}
	}
	s.mac.Reset()
	s.mac.Write([]byte{tagBytes})
	s.mac.Write(body)
	sum := s.sum()
	return Sums{Work: sum, Exact: sum}
}

// Join hashes a sum together with texts, such as the client, the method and the
// deployment that a body was sent to. Where a text ends makes a difference.
func (h *Hasher) Join(body Sum, texts ...string) Sum {
	s := h.pool.Get().(*scan)
	defer h.release(s)
	s.out = append(s.out[:0], tagJoin)
	s.out = append(s.out, body[:]...)
	for _, text := range texts {
		s.out = binary.AppendUvarint(s.out, uint64(len(text)))
		s.out = append(s.out, text...)
	}
	s.mac.Reset()
	s.mac.Write(s.out)
	return s.sum()
}

// release gives a scan back. What it has read is wiped: the pool would keep it.
func (h *Hasher) release(s *scan) {
	if cap(s.out)+cap(s.spare)+cap(s.text) > keptMax || cap(s.members) > keptMax/64 {
		return
	}
	clear(s.out[:cap(s.out)])
	clear(s.spare[:cap(s.spare)])
	clear(s.text[:cap(s.text)])
	s.in = nil
	h.pool.Put(s)
}

// scan is the reading of one body.
type scan struct {
	mac hash.Hash

	in []byte
	at int
	// out is the canonical form of what is open; whatever has ended and is long has
	// been replaced by its hash.
	out     []byte
	members []member
	// spare is where members are put in order, and text where a string or a number is
	// spelt out.
	spare, text []byte
	depthMax    int
	digest      [sha256.Size]byte
}

func (s *scan) sum() (sum Sum) {
	copy(sum[:], s.mac.Sum(s.digest[:0]))
	return sum
}
