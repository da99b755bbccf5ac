package attempt

import (
	"errors"
	"time"

	"github.com/quorlease/quorlease/client/gateway/internal/bound"
)

// Config says how much is remembered, and when a client counts as one that retries. The
// zero value is ready.
type Config struct {
	// TTL is for how long work that failed is remembered, 1 s to 1 h. Default 120 s. What
	// comes back later counts as a first attempt.
	TTL time.Duration
	// PerClient is how many pieces of work, and ids of them, are remembered of one client,
	// 16 to 2^20. Default 4,096. The longest unseen makes room.
	PerClient int
	// Clients is how many clients are remembered, at least 16. Default 16,384. They are
	// dealt out to 16 parts, so that somewhat fewer fit where chance wills it.
	Clients int
	// Entries is how many pieces of work and ids are remembered of all clients, 256 to
	// 2^24, at about 200 bytes each. Default 262,144.
	Entries int
	// Gap is how soon after a failure a request is suspected to be its retry, 100 ms to
	// 1 min. Default 2 s: a fixed second, and the way there and back.
	Gap time.Duration
	// Failures is how many throttled requests within 10 s make a client one that may be
	// suspected. Default 5.
	Failures uint32
	// FractionBP is which part of its requests must have been throttled then, in basis
	// points, up to 10,000; more than half it always is. Default 5,000.
	FractionBP uint32
	// AdviseEvery is how often a client is told that its SDK retries (Advise), 1 min to
	// 24 h. Default 1 h. A client that is away for longer is forgotten.
	AdviseEvery time.Duration
}

// shards is how many parts the clients are dealt out to, each with a lock of its own.
const shards = 16

func (c *Config) defaults() {
	bound.Default(&c.TTL, 2*time.Minute)
	bound.Default(&c.PerClient, 4096)
	bound.Default(&c.Clients, 16_384)
	bound.Default(&c.Entries, 262_144)
	bound.Default(&c.Gap, 2*time.Second)
	bound.Default(&c.Failures, 5)
	bound.Default(&c.FractionBP, 5000)
	bound.Default(&c.AdviseEvery, time.Hour)
}

func (c *Config) validate() error {
	return errors.Join(
		bound.Within("ttl", c.TTL, time.Second, time.Hour),
		bound.Within("per client", c.PerClient, 16, 1<<20),
		bound.Within("clients", c.Clients, shards, 1<<20),
		bound.Within("entries", c.Entries, 16*shards, 1<<24),
		bound.Within("gap", c.Gap, 100*time.Millisecond, time.Minute),
		bound.Within("failures", c.Failures, 1, 1<<20),
		bound.Within("fraction", c.FractionBP, 1, 10_000),
		bound.Within("advise every", c.AdviseEvery, time.Minute, 24*time.Hour),
	)
}
