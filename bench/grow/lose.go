package grow

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/quorlease/quorlease/bench"
	"github.com/quorlease/quorlease/client"
)

// LoseTwo goes from three voters to five, loses two of the first three at once, among
// them the only one that a client was told of, and says what was lost: the others must
// go on, and have what those have that come back.
func LoseTwo(ctx context.Context, config Config) (*Result, error) {
	r, err := begin(ctx, config)
	if err != nil {
		return nil, err
	}
	defer r.close()
	nodes := config.Nodes
	told := client.Config{Client: "grow", Endpoints: []string{nodes.GRPC(0)}, Deadline: time.Second}
	caller, err := client.New(told) //nolint:contextcheck // it lives until Close
	if err != nil {
		return nil, err
	}
	defer func() { _ = caller.Close() }() //nolint:contextcheck // as above
	come := nodes.Outside()
	for _, i := range come {
		if err := r.step(ctx, false, func(ctx context.Context) error { return nodes.Join(ctx, i) }); err != nil {
			return nil, err
		}
	}
	for _, i := range come {
		if err := r.step(ctx, false, func(ctx context.Context) error { return nodes.Promote(ctx, i) }); err != nil {
			return nil, err
		}
	}
	gone := []int{0, 1}
	killed := time.Now()
	for _, i := range gone {
		if err := nodes.Signal(i, syscall.SIGKILL); err != nil {
			return nil, err
		}
	}
	r.result.Kills = len(gone)
	if err := r.goesOn(ctx, killed); err != nil {
		return nil, err
	}
	looked, err := caller.Peek(ctx, "", client.Charge{Limit: bench.LedgerLimit, Dimension: "requests", Amount: 1})
	if err != nil || !looked.Granted {
		return nil, fmt.Errorf("a client that was told of one of the two got %+v: %w", looked, err)
	}
	for _, i := range gone {
		if err := nodes.Start(i); err != nil {
			return nil, err
		}
	}
	return r.result, r.finish(ctx)
}

// goesOnFor is how many leases show that service goes on.
const goesOnFor = 20

// goesOn waits until so many leases have been granted.
func (r *run) goesOn(ctx context.Context, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if first, ok := r.ledger.FirstGrantAfter(since); ok && r.ledger.GrantsAfter(since) >= goesOnFor {
			r.result.LongestFailover = first.Sub(since)
			return nil
		}
		rest(ctx, 10*time.Millisecond)
	}
	return errors.New("two of five were lost, and nothing is granted any more")
}
