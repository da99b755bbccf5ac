package replay

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client/gateway/canon"
	"github.com/quorlease/quorlease/client/gateway/internal/bound"
)

// Config bounds a Store. The zero value is ready.
type Config struct {
	// Keep is how long an answer is kept, 1 s to 30 days. Default 24 h. Below 0: nothing is kept
	// and no key is looked at.
	Keep time.Duration
	// Bytes is how much of all answers there is, with what finds them and with those that are being
	// recorded, 4 MiB to 1 TiB. Default 64 MiB, or four AnswerMax where that is more. Beyond it
	// the oldest go.
	Bytes int64
	// AnswerMax is the largest answer that is kept, its headers included, 1 KiB to a quarter of
	// Bytes. Default 1 MiB, or a quarter of Bytes where that is less.
	AnswerMax int64
	// Required are the paths whose writes have to have a key, as patterns of path.Match: '*' is
	// anything within a segment. At most 64, each of up to 256 bytes that begin with a slash.
	Required []string
}

// Requires says whether a write to a path has to have a key.
func (c *Config) Requires(path string) bool {
	return slices.ContainsFunc(c.Required, func(pattern string) bool { return matches(pattern, path) })
}

func matches(pattern, name string) bool {
	found, err := path.Match(pattern, name)
	return err == nil && found
}

// PathProblem is what is wrong with one of Required, "" if nothing.
func PathProblem(pattern string) string {
	_, err := path.Match(pattern, "/")
	switch {
	case len(pattern) > pathLenMax:
		return fmt.Sprintf("%d bytes, at most %d", len(pattern), pathLenMax)
	case pattern == "" || pattern[0] != '/':
		return fmt.Sprintf("%q does not begin with a slash", pattern)
	case err != nil:
		return fmt.Sprintf("%q is no pattern of a path", pattern)
	}
	return ""
}

const (
	keepMax            = 30 * 24 * time.Hour
	bytesMin, bytesMax = 4 << 20, 1 << 40
	answerMin          = 1 << 10
	bytesDefault       = 64 << 20
	answerDefault      = 1 << 20
	// answerPart is which part of all bytes one answer may have.
	answerPart = 4
	shards     = 16

	// RequiredMax is how many paths Config.Required has at most.
	RequiredMax = 64
	pathLenMax  = 256
)

// Check fills in the defaults. The error names every field that is out of range.
func (c *Config) Check() error {
	bound.Default(&c.Keep, 24*time.Hour)
	if c.Keep < 0 {
		c.Keep = -1
	}
	bound.Default(&c.Bytes, max(bytesDefault, min(c.AnswerMax, bytesMax)*answerPart))
	bound.Default(&c.AnswerMax, min(answerDefault, c.Bytes/answerPart))
	err := errors.Join(
		bound.Within("bytes", c.Bytes, bytesMin, bytesMax),
		bound.Within("answer max", c.AnswerMax, answerMin, max(answerMin, c.Bytes/answerPart)),
	)
	if c.Keep > 0 {
		err = errors.Join(err, bound.Within("keep", c.Keep, time.Second, keepMax))
	}
	if n := len(c.Required); n > RequiredMax {
		err = errors.Join(err, fmt.Errorf("required: %d paths, at most %d", n, RequiredMax))
	}
	for i, pattern := range c.Required {
		if problem := PathProblem(pattern); problem != "" {
			err = errors.Join(err, fmt.Errorf("required[%d]: %s", i, problem))
		}
	}
	return err
}

// Answer is one that was kept. Nobody changes it.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Standing is what becomes of a request with a key.
type Standing int

// The standings.
const (
	// First: it does the work, and has the Turn.
	First Standing = iota
	// InFlight: another request with the key and this payload is doing it.
	InFlight
	// Reused: the key came with another payload.
	Reused
	// Kept: the answer is there.
	Kept
)

// Store is what is in flight and what was answered, by key. It is safe for concurrent use.
type Store struct {
	began  time.Time
	bounds atomic.Pointer[Config]
	// taken is what all answers take, and next the shard that makes room next.
	taken   atomic.Int64
	next    atomic.Uint32
	counted counts
	shards  [shards]shard
}

// counts are the counters of Stats.
type counts struct{ replayed, kept, evicted, large atomic.Uint64 }

// New returns a Store. Close ends it. The error names every field that is out of range.
func New(c Config) (*Store, error) {
	s := &Store{began: time.Now()}
	for i := range s.shards {
		s.shards[i].open(s)
	}
	if err := s.Bound(c); err != nil {
		return nil, err
	}
	return s, nil
}

// Bound puts other bounds in force: what no longer fits them is forgotten. The error names every field
// that is out of range, and changes nothing.
func (s *Store) Bound(c Config) error {
	if err := c.Check(); err != nil {
		return fmt.Errorf("replay configuration: %w", err)
	}
	s.bounds.Store(&c)
	for i := range s.shards {
		s.shards[i].expire()
	}
	s.reserve(0)
	return nil
}

// Off says whether nothing is kept and no key looked at.
func (s *Store) Off() bool { return s.bounds.Load().Keep < 0 }

// now is the time that shards know.
func (s *Store) now() time.Duration { return time.Since(s.began) }

// reserve takes so many bytes more, and makes room for them. It is false where there is none.
func (s *Store) reserve(n int64) bool {
	most := s.bounds.Load().Bytes
	for taken := s.taken.Add(n); taken > most; taken = s.taken.Load() {
		if !s.shed() {
			s.taken.Add(-n)
			return false
		}
	}
	return true
}

// shed forgets the oldest answers of one shard, as many as it takes to have more room. It is false
// where there is nothing to forget.
func (s *Store) shed() bool {
	for range shards {
		if s.shards[s.next.Add(1)%shards].shed() {
			return true
		}
	}
	return false
}

// Begin says what becomes of a request with a key and a payload. The Turn is there for the First one
// alone, and has to be ended; the Answer for one that was Kept.
func (s *Store) Begin(key, payload canon.Sum) (*Turn, Answer, Standing) {
	h := &s.shards[key[0]%shards]
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expireLocked()
	if before, there := h.flying[key]; there {
		if before != payload {
			return nil, Answer{}, Reused
		}
		return nil, Answer{}, InFlight
	}
	if at, there := h.kept[key]; there {
		r := h.readLocked(at)
		if r.payload != payload {
			return nil, Answer{}, Reused
		}
		s.counted.replayed.Add(1)
		return nil, r.answer(), Kept
	}
	h.flying[key] = payload
	return &Turn{shard: h, key: key, payload: payload, most: s.bounds.Load().AnswerMax}, Answer{}, First
}

// Close forgets everything. Turns that have begun may be ended, and nothing is kept any more. It may
// be called twice.
func (s *Store) Close() {
	for i := range s.shards {
		s.shards[i].close()
	}
}

// Stats are what a Store has done since it was made, and what it holds.
type Stats struct {
	// Replayed counts answers that were given again, and Kept those that were kept.
	Replayed, Kept uint64
	// Evicted counts answers that made room before their time: what comes again is done again.
	Evicted uint64
	// Large counts answers that were larger than AnswerMax or found no room.
	Large uint64
	// Answers is how many there are, Flying how many keys are in flight, and Bytes what all of
	// it takes.
	Answers, Flying int
	Bytes           int64
}

// Stats adds up the shards, one after the other.
func (s *Store) Stats() Stats {
	n := &s.counted
	all := Stats{
		Replayed: n.replayed.Load(), Kept: n.kept.Load(), Evicted: n.evicted.Load(), Large: n.large.Load(),
		Bytes: s.taken.Load(),
	}
	for i := range s.shards {
		h := &s.shards[i]
		h.mu.Lock()
		all.Answers += len(h.kept)
		all.Flying += len(h.flying)
		h.mu.Unlock()
	}
	return all
}
