package attempt

import (
	"strings"
	"sync"
	"time"

	"github.com/quorlease/quorlease/client/gateway/canon"
)

// none is the index of nothing.
const none = int32(-1)

// key is a piece of work, or an id of it, of one client.
type key struct {
	client int32
	sum    canon.Sum
}

// entry is what is known of a key.
type entry struct {
	key
	// at is when the last attempt ended or, before any has, when the first began.
	at time.Duration
	// seen is when the last attempt arrived; hasty: that was soon after the one before.
	seen     time.Duration
	hasty    bool
	attempt  uint32
	inFlight uint32
	last     Outcome
	// work is the beginning of the work's hash, of an id.
	work [8]byte
	// life tells one use of this place from the next.
	life uint32
	// byAge are the neighbours among all of a shard, byClient those of the client.
	byAge, byClient links
}

// client is one client.
type client struct {
	name    string
	life    uint32
	entries order[entry]
	courses [coursesMax]course
	used    time.Duration
	// advised is when it was last told of its SDK; told: it was.
	advised time.Duration
	told    bool
	byAge   links
}

// ref is a place in a slab, for as long as its life lasts.
type ref struct {
	at   int32
	life uint32
}

// shard is a part of the clients.
type shard struct {
	mu      sync.Mutex
	bounds  bounds
	names   map[string]int32
	keys    map[key]int32
	clients slab[client]
	entries slab[entry]
	// The most recently used is first.
	clientsByAge order[client]
	entriesByAge order[entry]
	stats        Stats
}

// bounds are those of one shard.
type bounds struct {
	clients, entries, perClient int
	ttl, forget                 time.Duration
}

func (s *shard) init(b bounds) {
	s.bounds = b
	s.names, s.keys = make(map[string]int32), make(map[key]int32)
	s.clientsByAge, s.entriesByAge = newOrder[client](), newOrder[entry]()
}

// clientLocked is the client of that name.
func (s *shard) clientLocked(now time.Duration, name string) int32 {
	if i, ok := s.names[name]; ok {
		s.clients.list[i].used = now
		s.clientsByAge.touch(clientAge, s.clients.list, i)
		return i
	}
	for s.clientsByAge.n > 0 {
		oldest := s.clientsByAge.last
		idle := now-s.clients.list[oldest].used > s.bounds.forget
		if !idle && s.clientsByAge.n < s.bounds.clients {
			break
		}
		if !idle {
			s.stats.ClientsEvicted++
		}
		s.dropClientLocked(oldest)
	}
	i := s.clients.take()
	c := &s.clients.list[i]
	*c = client{name: strings.Clone(name), life: c.life + 1, entries: newOrder[entry](), used: now}
	s.names[c.name] = i
	s.clientsByAge.push(clientAge, s.clients.list, i)
	return i
}

func (s *shard) dropClientLocked(i int32) {
	c := &s.clients.list[i]
	for c.entries.n > 0 {
		s.dropLocked(c.entries.last)
	}
	delete(s.names, c.name)
	c.name = ""
	c.life++
	s.clientsByAge.remove(clientAge, s.clients.list, i)
	s.clients.free = append(s.clients.free, i)
}

// liveLocked is the entry of a key, nil where there is none or it is too old.
func (s *shard) liveLocked(now time.Duration, k key) *entry {
	i, ok := s.keys[k]
	if !ok || s.expiredLocked(now, i) {
		return nil
	}
	return &s.entries.list[i]
}

// inFlightMax is how many times the TTL an attempt may take before it counts as lost.
const inFlightMax = 10

func (s *shard) expiredLocked(now time.Duration, i int32) bool {
	e := &s.entries.list[i]
	life := s.bounds.ttl
	if e.inFlight > 0 {
		life *= inFlightMax
	}
	return now-e.at >= life
}

// hastyMax is how soon after the last attempt one comes that does not wait as it was told: who
// is refused for a retry budget hears of a minute.
const hastyMax = 30 * time.Second

// beginLocked notes that an attempt at k begins.
func (s *shard) beginLocked(now time.Duration, k key, attempt uint32) ref {
	i, ok := s.keys[k]
	if ok && s.expiredLocked(now, i) {
		s.dropLocked(i)
		ok = false
	}
	if !ok {
		i = s.openLocked(now, k, attempt)
	}
	e := &s.entries.list[i]
	e.inFlight++
	e.hasty, e.seen = ok && now-e.seen < hastyMax, now
	s.entriesByAge.touch(entryAge, s.entries.list, i)
	s.clients.list[k.client].entries.touch(entryClient, s.entries.list, i)
	return ref{i, e.life}
}

func (s *shard) openLocked(now time.Duration, k key, attempt uint32) int32 {
	for range 2 {
		// What is too old goes by and by.
		if s.entriesByAge.n > 0 && s.expiredLocked(now, s.entriesByAge.last) {
			s.dropLocked(s.entriesByAge.last)
		}
	}
	mine := &s.clients.list[k.client].entries
	if mine.n >= s.bounds.perClient {
		s.evictLocked(now, mine.last)
	}
	if s.entriesByAge.n >= s.bounds.entries {
		s.evictLocked(now, s.entriesByAge.last)
	}
	i := s.entries.take()
	e := &s.entries.list[i]
	*e = entry{key: k, at: now, attempt: attempt, life: e.life + 1}
	s.keys[k] = i
	s.entriesByAge.push(entryAge, s.entries.list, i)
	mine.push(entryClient, s.entries.list, i)
	return i
}

func (s *shard) evictLocked(now time.Duration, i int32) {
	if !s.expiredLocked(now, i) {
		s.stats.Evicted++
	}
	s.dropLocked(i)
}

func (s *shard) dropLocked(i int32) {
	e := &s.entries.list[i]
	delete(s.keys, e.key)
	e.life++
	s.entriesByAge.remove(entryAge, s.entries.list, i)
	s.clients.list[e.client].entries.remove(entryClient, s.entries.list, i)
	s.entries.free = append(s.entries.free, i)
}

// endLocked notes how an attempt ended. keep: it is remembered although it succeeded.
func (s *shard) endLocked(now time.Duration, r ref, attempt uint32, end ending) {
	e := &s.entries.list[r.at]
	if e.life != r.life {
		return
	}
	e.inFlight = max(e.inFlight, 1) - 1
	switch {
	case end.outcome != Refused:
		e.last, e.at, e.work = end.outcome, now, end.work
		e.attempt = max(e.attempt, attempt)
	case e.hasty:
		// A loop is not forgotten while it goes on.
		e.at = now
	}
	// What succeeded, or never went anywhere, is nothing to compare with.
	keep := e.last.retryable() || e.last == Succeeded && end.strong
	if e.inFlight == 0 && !keep {
		s.dropLocked(r.at)
	}
}

// ending is how an attempt ended. strong: it is noted under an id that is remembered
// although the work succeeded.
type ending struct {
	outcome Outcome
	work    [8]byte
	strong  bool
}
