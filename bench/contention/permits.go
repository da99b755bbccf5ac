package contention

import (
	"context"
	"errors"
	"runtime"

	"github.com/quorlease/quorlease/bench/load"
	"github.com/quorlease/quorlease/client"
)

// throughLimiters spends tokens that one client has leased in blocks: a limiter a
// key, which all callers share.
func throughLimiters(c *Config, endpoints []string) (*authority, error) {
	one, err := client.New(client.Config{Endpoints: endpoints, Client: clientName, Deadline: c.Timeout})
	if err != nil {
		return nil, err
	}
	limiters := make([]*client.Limiter, c.Keys)
	for i := range limiters {
		limiters[i], err = one.Limiter(client.LimiterConfig{Limit: limitName, Key: keyName(i), Dimension: dimension})
		if err != nil {
			return nil, errors.Join(err, one.Close())
		}
	}
	return &authority{
		newAsker: func() load.Asker { return permitAsker(limiters) },
		end:      one.Close,
	}, nil
}

// permitAsker is one caller of the limiters, by key.
type permitAsker []*client.Limiter

// ask never waits while tokens are held. It takes a permit, and not only a yes,
// because a permit says whether the client gave it by itself. A caller who goes on at once for ever
// would keep the processor from whoever fetches the next block, so it steps back
// after each permit.
func (a permitAsker) Ask(_ context.Context, key int) (load.Answer, error) {
	permit, granted := a[key].Take(1)
	permit.Settle(1)
	runtime.Gosched()
	return load.Answer{Granted: granted, Local: permit.Local()}, nil
}
