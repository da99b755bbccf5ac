package compare

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorlease/quorlease/bench/compare/page"
	"github.com/quorlease/quorlease/bench/compare/peer"
)

const (
	// spenders is how many empty the buckets of a trial: one each. More would stand in
	// one another's way where a decision is a read and a conditional write.
	spenders = trialKeys
	// spendWait is how long they may take: four thousand commits, on a machine that is busy
	// with other things.
	spendWait = 2 * time.Minute
	// spendMost is how much one of them takes at most: where nothing is ever
	// refused, that must end too.
	spendMost = 4 * trialBurst
	// spendPause is between two tries where nobody answers.
	spendPause = 20 * time.Millisecond
)

// spent is what was granted, by key.
type spent struct {
	keys   [trialKeys]int64
	escrow int64
}

func (s *spent) sum() (sum int64) {
	for _, n := range s.keys {
		sum += n
	}
	return sum
}

// try kills everybody, one after the other.
func (r *run) try(ctx context.Context) error {
	for _, one := range r.systems {
		keeper, keeps := one.system.(peer.Keeper)
		for _, t := range one.trials {
			if !keeps {
				return fmt.Errorf("%s: it can't be killed", one.name)
			}
			r.say("killing %s", t.slug)
			done, err := r.tried(ctx, keeper, t)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				done.Failed = err.Error()
			}
			r.result.Trials = append(r.result.Trials, done)
		}
	}
	return nil
}

// tried empties the buckets, kills, and empties them again.
func (r *run) tried(ctx context.Context, keeper peer.Keeper, t trial) (page.Trial, error) {
	_, bucket := r.config.buckets()
	done := page.Trial{
		Trial: t.slug, Name: t.name, Copies: t.copies, Disk: t.disk,
		Keys: bucket.Keys, Burst: bucket.Burst, PerSecond: bucket.PerSecond,
	}
	began := time.Now()
	before, err := r.spend(ctx, keeper, t.way, bucket)
	if err != nil {
		return done, fmt.Errorf("before it was killed: %w", err)
	}
	if err := keeper.Crash(ctx); err != nil {
		return done, fmt.Errorf("start again: %w", err)
	}
	after, err := r.spend(ctx, keeper, t.way, bucket)
	if err != nil {
		return done, fmt.Errorf("after it was killed: %w", err)
	}
	done.Seconds = time.Since(began).Seconds()
	done.Before, done.After, done.Escrow = before.sum(), after.sum(), before.escrow+after.escrow
	for key := range before.keys {
		done.Over += max(0, before.keys[key]+after.keys[key]-done.Allowed())
	}
	return done, nil
}

// spend takes from every bucket until it refuses.
func (r *run) spend(ctx context.Context, keeper peer.Keeper, way peer.Way, bucket peer.Bucket) (spent, error) {
	ctx, cancel := context.WithTimeout(ctx, spendWait)
	defer cancel()
	door, err := keeper.Open(ctx, way, bucket)
	if err != nil {
		return spent{}, err
	}
	defer door.Close()
	note := r.note(keeper, way, bucket)
	var mu sync.Mutex
	var all spent
	var failed error
	var joined sync.WaitGroup
	for i := range spenders {
		joined.Go(func() {
			granted, escrow, err := spendOne(ctx, door, i, note)
			mu.Lock()
			defer mu.Unlock()
			all.keys[i%trialKeys] += granted
			all.escrow += escrow
			failed = cmp.Or(failed, err)
		})
	}
	joined.Wait()
	return all, failed
}

// spendOne takes from one bucket until it refuses. Nobody who answers is no refusal.
func spendOne(
	ctx context.Context, door peer.Door, index int, note func(key int, sent, ended time.Time),
) (granted, escrow int64, err error) {
	asker, err := door.Asker(index)
	if err != nil {
		return 0, 0, err
	}
	for granted < spendMost {
		sent := time.Now()
		said, err := asker.Ask(ctx, index%trialKeys)
		switch {
		case err != nil:
			if pause(ctx, spendPause) != nil {
				return granted, escrow, err
			}
		case !said.Granted:
			return granted, escrow, nil
		default:
			granted++
			note(index%trialKeys, sent, time.Now())
			if said.Escrow {
				escrow++
			}
		}
	}
	return granted, escrow, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
