package charge

import (
	"context"
	"errors"
	"time"

	"github.com/quorlease/quorlease/client"
	"github.com/quorlease/quorlease/client/gateway/internal/bound"
	"github.com/quorlease/quorlease/client/report"
)

// Authority decides. *client.Client is one.
type Authority interface {
	Leases
	Permits
}

// Leases are what is asked for, call by call.
type Leases interface {
	Acquire(ctx context.Context, r client.Request) (*client.Decision, error)
	Settle(ctx context.Context, lease client.Lease, used ...client.Usage) (*client.Settlement, error)
	Release(ctx context.Context, lease client.Lease) (*client.Settlement, error)
	Renew(ctx context.Context, lease client.Lease, r client.Renewal) (*client.Settlement, error)
}

// Permits are what calls are paid with that ask nobody.
type Permits interface {
	Limiter(config client.LimiterConfig) (*client.Limiter, error)
	TriesOf(name string) *report.Book
	FailOpen() bool
}

// Config bounds a Desk. Only Authority is needed.
type Config struct {
	Authority Authority
	// Plans is how many plans are remembered, 16 to 2^20. Default 8,192; beyond it one of
	// those that were not used for long goes, and its next call asks by attributes.
	Plans int
	// PlanLife is for how long a plan is good, 100 ms to 10 min. Default 10 s. Then one call
	// asks by attributes again, and others go on with the old plan for as long once more at
	// most: a limit that is new is charged from twice this time on.
	PlanLife time.Duration
	// Limiters is of how many limits and keys blocks are held at once, 1 to 65,536. Default
	// 1,024. Of others every call asks.
	Limiters int
	// Idle is after how long without use a limiter is closed, and what is known of it
	// forgotten, 1 s to 1 h. Default 30 s.
	Idle time.Duration
	// Busy is how many calls within 4 s make it worth holding blocks of what they are charged,
	// 1 to 1,000. Default 4: a block costs two commits for each limit, and a call that asks
	// two for all of them.
	Busy int
	// Workers settle and renew leases, 1 to 256. Default 32: each waits for a commit, and
	// slots that nobody needs any more are held until one is there.
	Workers int
	// Settlements is how many leases may wait to be settled or renewed, 1 to 2^20. Default
	// 4,096. Beyond it a lease ends by itself, charged in full.
	Settlements int
	// CallMax is for how long the lease of a call is renewed, 1 s to 24 h. Default 1 h. A call
	// that never ends then gives its slots back all the same.
	CallMax time.Duration
	// CloseWithin bounds how long Close goes on settling, up to 1 min. Default 2 s.
	CloseWithin time.Duration
}

func (c *Config) defaults() {
	bound.Default(&c.Plans, 8192)
	bound.Default(&c.PlanLife, 10*time.Second)
	bound.Default(&c.Limiters, 1024)
	bound.Default(&c.Idle, 30*time.Second)
	bound.Default(&c.Busy, 4)
	bound.Default(&c.Workers, 32)
	bound.Default(&c.Settlements, 4096)
	bound.Default(&c.CallMax, time.Hour)
	bound.Default(&c.CloseWithin, 2*time.Second)
}

func (c *Config) validate() error {
	problems := []error{
		bound.Within("plans", c.Plans, 16, 1<<20),
		bound.Within("plan life", c.PlanLife, 100*time.Millisecond, 10*time.Minute),
		bound.Within("limiters", c.Limiters, 1, 1<<16),
		bound.Within("idle", c.Idle, time.Second, time.Hour),
		bound.Within("busy", c.Busy, 1, 1000),
		bound.Within("workers", c.Workers, 1, 256),
		bound.Within("settlements", c.Settlements, 1, 1<<20),
		bound.Within("call max", c.CallMax, time.Second, 24*time.Hour),
		bound.Within("close within", c.CloseWithin, 0, time.Minute),
	}
	if c.Authority == nil {
		problems = append(problems, errors.New("authority: missing"))
	}
	return errors.Join(problems...)
}
