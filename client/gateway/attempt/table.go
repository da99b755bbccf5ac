package attempt

import (
	"fmt"
	"hash/maphash"
	"time"

	"github.com/quorlease/quorlease/client/gateway/canon"
)

// Table remembers what failed, and finds out what comes again. It keeps hashes, and no
// goroutine. It is safe for concurrent use; a client's requests take turns.
type Table struct {
	config Config
	seed   maphash.Seed
	shards [shards]shard
}

// NewTable returns a Table. The error names every field that is out of range.
func NewTable(c Config) (*Table, error) {
	c.defaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("attempts configuration: %w", err)
	}
	t := &Table{config: c, seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].init(bounds{
			clients: c.Clients / shards, entries: c.Entries / shards, perClient: c.PerClient,
			ttl: c.TTL, forget: c.AdviseEvery,
		})
	}
	return t, nil
}

// Request is what is known of a request when it arrives.
type Request struct {
	// Client is whose it is, by its credential.
	Client string
	// Work is the hash of its method, route and body (canon.Sums.Work, joined with the
	// others).
	Work canon.Sum
	// Deployment is where it goes: failures at one say nothing about another.
	Deployment string
	// IDs are what it calls itself, and Declared what it says of its attempts.
	IDs      IDs
	Declared Declaration
}

// Call is one attempt, from its Begin to its End. It is used by one goroutine at a time.
type Call struct {
	// Attempt is how many retries were made before it, 0 to RetriesMax: what was declared
	// or what was inferred, whichever is more.
	Attempt uint32
	// Ceiling is what a maximum of retries is compared with: Attempt, or the product
	// bound of the layers that declare theirs, whichever is more.
	Ceiling uint32
	// Source is what Attempt comes from.
	Source Source
	// Duplicate: the same work of the same client is in flight. It is no retry for that.
	Duplicate bool

	table      *Table
	shard      *shard
	client     ref
	deployment uint64
	known      uint32
	work       [8]byte
	refs       [1 + idsMax]ref
	n, strong  int
}

// Begin takes in a request that arrives at now, which is time since some moment and never
// goes back by much. End has to be called for what it returns.
func (t *Table) Begin(now time.Duration, r *Request) Call {
	call := Call{table: t, shard: t.shardOf(r.Client), n: 1 + r.IDs.n, strong: r.IDs.strong}
	call.deployment = maphash.String(t.seed, r.Deployment)
	copy(call.work[:], r.Work[:])
	s := call.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.clientLocked(now, r.Client)
	call.client = ref{at, s.clients.list[at].life}
	inferred, source := s.inferLocked(now, at, r, &call)
	if !call.Duplicate {
		// A retry that was recognised has used up the failure that it follows, too.
		k := s.clients.list[at].course(now, call.deployment)
		failing := k.arrives(now) && k.failing(now, t.config.Failures, t.config.FractionBP)
		follows := k.follows(now, t.config.Gap)
		switch {
		case max(inferred, r.Declared.Retries) > 0:
			k.now.recognised++
		case follows && failing:
			inferred, source = 1, Suspected
		}
	}
	call.Attempt, call.Source = inferred, source
	if r.Declared.Retries > 0 && r.Declared.Retries >= inferred {
		call.Attempt, call.Source = r.Declared.Retries, Declared
	}
	call.Ceiling = max(call.Attempt, r.Declared.Ceiling)
	// What is only suspected is no foundation for the number of the next one.
	if call.known = call.Attempt; call.Source == Suspected {
		call.known = 0
	}
	call.refs[0] = s.beginLocked(now, key{at, r.Work}, call.known)
	for i, sum := range r.IDs.sums[:r.IDs.n] {
		call.refs[1+i] = s.beginLocked(now, key{at, sum}, call.known)
	}
	s.countLocked(&call, r.Declared.Invalid)
	return call
}

// inferLocked is what the entries of a request's work and ids say of it.
func (s *shard) inferLocked(now time.Duration, at int32, r *Request, call *Call) (inferred uint32, source Source) {
	raise := func(e *entry) {
		inferred, source = max(inferred, min(e.attempt+1, RetriesMax)), Inferred
	}
	if e := s.liveLocked(now, key{at, r.Work}); e != nil {
		switch {
		case e.inFlight > 0:
			call.Duplicate = true
		case e.last.retryable():
			raise(e)
		}
	}
	for _, sum := range r.IDs.sums[:r.IDs.n] {
		e := s.liveLocked(now, key{at, sum})
		if e == nil || e.inFlight > 0 {
			continue
		}
		// A success is remembered under a strong id only. The same work under the same name
		// is the one whose answer got lost.
		again := e.last == Succeeded && e.work == call.work
		if e.last.retryable() || again {
			raise(e)
		}
	}
	return inferred, source
}

// End notes how the attempt ended. Only the first one counts.
func (c *Call) End(now time.Duration, o Outcome) {
	s := c.shard
	if s == nil {
		return
	}
	c.shard = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range c.refs[:c.n] {
		s.endLocked(now, r, c.known, ending{o, c.work, i > 0 && i <= c.strong})
	}
	if client := &s.clients.list[c.client.at]; client.life == c.client.life {
		client.course(now, c.deployment).ended(now, c.table.config.Gap, o)
	}
}

// Advise returns what to tell whoever runs a client whose SDK retries although the
// gateway does: once for a client and hour (Config.AdviseEvery), and empty otherwise.
func (t *Table) Advise(now time.Duration, name string, d Declaration) string {
	if d.SDK == 0 {
		return ""
	}
	s := t.shardOf(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.clients.list[s.clientLocked(now, name)]
	if c.told && now-c.advised < t.config.AdviseEvery {
		return ""
	}
	c.told, c.advised = true, now
	return fmt.Sprintf("client %.64q has an SDK that retries (attempt %d arrived), and the gateway does so too: "+
		"set the SDK's retries to 0", name, d.SDK+1)
}

func (t *Table) shardOf(name string) *shard { return &t.shards[maphash.String(t.seed, name)%shards] }

// Stats are what a Table has seen since it was made, and what it holds.
type Stats struct {
	// First, Declared, Inferred and Suspected count attempts by the source of their number.
	First, Declared, Inferred, Suspected uint64
	// Duplicates count requests whose work was in flight.
	Duplicates uint64
	// Invalid counts markers that could not be used.
	Invalid uint64
	// Evicted counts pieces of work and ids that made room before their time, and
	// ClientsEvicted clients: retries of those are missed.
	Evicted, ClientsEvicted uint64
	// Entries and Clients are how many there are.
	Entries, Clients int
}

func (s *shard) countLocked(c *Call, invalid int) {
	s.stats.Invalid += uint64(invalid)
	if c.Duplicate {
		s.stats.Duplicates++
	}
	switch c.Source {
	case First:
		s.stats.First++
	case Declared:
		s.stats.Declared++
	case Inferred:
		s.stats.Inferred++
	case Suspected:
		s.stats.Suspected++
	}
}

// Stats adds up the shards, one after the other.
func (t *Table) Stats() Stats {
	var all Stats
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		one := s.stats
		all.Entries += s.entriesByAge.n
		all.Clients += s.clientsByAge.n
		s.mu.Unlock()
		all.First += one.First
		all.Declared += one.Declared
		all.Inferred += one.Inferred
		all.Suspected += one.Suspected
		all.Duplicates += one.Duplicates
		all.Invalid += one.Invalid
		all.Evicted += one.Evicted
		all.ClientsEvicted += one.ClientsEvicted
	}
	return all
}
