package upstream

import (
	"time"

	"github.com/quorlease/quorlease/bench/provider"
)

// Outcome is how a call ended.
type Outcome string

// The ends of calls.
const (
	// Served to the end.
	Served Outcome = "served"
	// Refused before anything was written: Call.Cause says for what.
	Refused Outcome = "refused"
	// Replayed: it had the key of one that was served, and got its answer.
	Replayed Outcome = "replayed"
	// Spoilt by an error inside its stream.
	Spoilt Outcome = "spoilt"
	// Broken by the server, which closed the connection.
	Broken Outcome = "broken"
	// Left by the client, or ended by Close.
	Left Outcome = "left"
)

// Call is one call as the provider saw it.
type Call struct {
	// Arrived and Ended are in the scenario's time.
	Arrived, Ended time.Duration
	// Client and Key are what the headers x-client-id and idempotency-key, or else
	// x-request-id, said; at most 128 bytes of each.
	Client, Key string
	// Attempt is how many retries were made before it, as its headers say it
	// (client/gateway/attempt).
	Attempt uint32
	// Path and Model are what was asked of whom.
	Path, Model string
	Stream      bool
	Outcome     Outcome
	// Status is that of the answer; 0 where none was begun.
	Status int
	// Cause is what it was refused or spoilt for.
	Cause Cause
	// Estimated is what was asked of the account.
	Estimated provider.Call
	// Billed is what was really used: the whole prompt, and what had been written when
	// the call ended.
	Billed provider.Call
	// CacheRead is how much of the prompt was read from the cache.
	CacheRead int64
}

// Ledger is what a provider has seen.
type Ledger struct {
	// Calls are in the order in which they ended, the newest LedgerMax of them.
	Calls []Call
	// Dropped is how many are no longer there.
	Dropped int64
	// Outcomes counts all of them. Those that are Served are the effects.
	Outcomes map[Outcome]int64
	// Billed is the sum over all of them.
	Billed provider.Call
	// Underway is how many have not ended.
	Underway int
}

// book is the ledger as it is kept: a ring.
type book struct {
	calls    []Call
	next     int
	dropped  int64
	outcomes map[Outcome]int64
	billed   provider.Call
}

func (b *book) add(c Call, most int) {
	b.outcomes[c.Outcome]++
	b.billed.Input += c.Billed.Input
	b.billed.Output += c.Billed.Output
	if len(b.calls) < most {
		b.calls = append(b.calls, c)
		return
	}
	b.calls[b.next] = c
	b.next = (b.next + 1) % most
	b.dropped++
}

// Ledger is a copy of what has been seen so far.
func (s *Server) Ledger() Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &s.mu.book
	l := Ledger{
		Calls: append(append([]Call(nil), b.calls[b.next:]...), b.calls[:b.next]...), Dropped: b.dropped,
		Outcomes: make(map[Outcome]int64, len(b.outcomes)), Billed: b.billed, Underway: len(s.mu.underway),
	}
	for outcome, n := range b.outcomes {
		l.Outcomes[outcome] = n
	}
	return l
}

// short bounds what a client may have written into the ledger.
func short(text string) string { return text[:min(len(text), 128)] }
