package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorlease/quorlease/client/block"
)

// LimiterConfig says what a Limiter limits.
type LimiterConfig struct {
	// Limit, Key, Dimension and Class are those of a Charge and of a Request. The
	// dimension's default is "requests".
	Limit, Key, Dimension, Class string
	// BlockMax is how many tokens are leased at once at most, 1 to 2^53. Default
	// 2^53: demand decides. A single request for more is leased all the same.
	BlockMax int64
	// Patience is how long Allow, Reserve and Take wait for the authority when
	// nothing is held and nothing is known, up to 1 h: then the limit's on_quorum_loss
	// decides. Default 200 ms, or Config.Deadline where that is shorter. While tokens
	// are held they never wait.
	Patience time.Duration
}

// patienceMax is how long a call waits that callers believe to be instant.
const patienceMax = 200 * time.Millisecond

func (c *LimiterConfig) check() error {
	charge := Charge{Limit: c.Limit, Key: c.Key, Dimension: c.Dimension, Amount: 1}
	if err := (&Request{Class: c.Class, Charges: []Charge{charge}}).check(); err != nil {
		return err
	}
	if c.BlockMax < 0 || c.BlockMax > block.TokensMax {
		return &BadRequestError{"block_max", fmt.Sprintf("%d is out of range 1..%d", c.BlockMax, int64(block.TokensMax))}
	}
	if c.Patience < 0 || c.Patience > deadlineMax {
		return &BadRequestError{"patience", fmt.Sprintf("%s is out of range 0..%s", c.Patience, deadlineMax)}
	}
	return nil
}

// Limiter answers from tokens that it has leased in blocks: in nanoseconds, with
// no network, no lock and no allocation while it holds some. It asks for the
// next block in the background, before the one it spends has run out, as large
// as the recent demand; and gives back what is not needed. The limit is the
// authority's, for all clients together.
//
// The methods are those of golang.org/x/time/rate. Beyond them, Take and
// Permit.Settle are for amounts that are only known afterwards. While nobody
// answers, and nothing is held, a Limiter decides by the limit's on_quorum_loss
// as Client.Acquire does.
//
// Safe for concurrent use. Keep one for each limit, key and class.
type Limiter struct {
	client *Client
	config LimiterConfig

	// held are the blocks, the first to end first. The slice is replaced, never
	// changed.
	held atomic.Pointer[[]*holding]
	// told: the goroutine knows that the newest block runs low.
	told atomic.Bool
	// waiting is how many are in line.
	waiting atomic.Int64
	// wish wakes the goroutine.
	wish   chan struct{}
	stop   context.CancelFunc
	joined sync.WaitGroup

	mu struct {
		sync.Mutex
		queue   []*waiter
		refusal refusal
		// quiet is until when nobody is asked because the last question had no answer,
		// and failure why, if it was an error that is one: an unknown limit, say.
		quiet   time.Duration
		failure error
		// owed are tokens that were used and of which no block had any left.
		owed   int64
		closed bool
	}

	// What follows belongs to the goroutine.

	size *block.Size
	// spent is what size has heard of, of each block that is held.
	spent map[*holding]int64
	// smaller, if not 0, is what to ask for after a larger request was refused.
	smaller int64
	// drained: the newest block was used up, so that another one is needed.
	drained bool
	// open is a question that nobody answered: it is repeated as it was (G4).
	open *openQuestion
}

// holding is a block in use.
type holding struct {
	*block.Block
	lease Lease
	// retire is when it is closed and settled: a little before its end, so that what
	// is left still goes back.
	retire time.Duration
	// unsettled counts permits and reservations of which some may come back.
	unsettled atomic.Int64
}

type openQuestion struct {
	request Request
	asked   time.Duration
	// again: it was asked more than once.
	again bool
}

// refusal is the last definite no.
type refusal struct {
	denial Denial
	// amount is what was refused; less may be granted.
	amount int64
	// until is when to ask again, gather when to do so where nobody waits for the
	// very moment: some tokens together cost less than one by one.
	until, gather time.Duration
}

// Limiter returns a limiter that holds nothing yet. Close it, or the client.
func (c *Client) Limiter(config LimiterConfig) (*Limiter, error) {
	if config.Dimension == "" {
		config.Dimension = "requests"
	}
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("limiter configuration: %w", err)
	}
	if config.BlockMax == 0 {
		config.BlockMax = block.TokensMax
	}
	if config.Patience == 0 {
		config.Patience = min(c.config.Deadline, patienceMax)
	}
	l := &Limiter{
		client: c, config: config, wish: make(chan struct{}, 1),
		size: block.NewSize(config.BlockMax), spent: make(map[*holding]int64),
	}
	l.held.Store(&[]*holding{})
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.authority.Stopped() || c.mu.limiters == nil {
		cancel()
		return nil, ErrClosed
	}
	c.mu.limiters[l] = struct{}{}
	l.joined.Go(func() { l.run(ctx) })
	return l, nil
}

// spend takes n tokens from a block that is held, or returns nil.
func (l *Limiter) spend(now time.Duration, n int64) *holding {
	held := *l.held.Load()
	for i, h := range held {
		if left, ok := h.Spend(now, n); ok {
			l.notice(h, left, i == len(held)-1)
			return h
		}
	}
	return nil
}

// hold is spend for tokens of which some may come back: the block is kept open
// for them, also if they were its last.
func (l *Limiter) hold(now time.Duration, n int64) *holding {
	held := *l.held.Load()
	for i, h := range held {
		h.unsettled.Add(1)
		if left, ok := h.Spend(now, n); ok {
			l.notice(h, left, i == len(held)-1)
			return h
		}
		h.unsettled.Add(-1)
	}
	return nil
}

// notice tells the goroutine, once, when the newest block runs low.
func (l *Limiter) notice(h *holding, left int64, newest bool) {
	if newest && h.IsLow(left) && !l.told.Load() && l.told.CompareAndSwap(false, true) {
		wake(l.wish)
	}
}

// Close gives back what is held, within Config.CloseWithin, and ends the limiter:
// Allow is false then, and Wait fails with ErrClosed. It is idempotent.
func (l *Limiter) Close() error {
	within, cancel := context.WithTimeout(context.Background(), l.client.config.CloseWithin)
	defer cancel()
	l.close(within)
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	delete(l.client.mu.limiters, l)
	return nil
}

func (l *Limiter) close(within context.Context) {
	l.mu.Lock()
	queue := l.mu.queue
	first := !l.mu.closed
	l.mu.closed = true
	l.lineLocked(nil)
	l.mu.Unlock()
	for _, w := range queue {
		w.answer(outcome{err: ErrClosed})
	}
	l.stop()
	l.joined.Wait()
	if !first {
		return
	}
	var settled sync.WaitGroup
	if q := l.open; q != nil {
		// Nobody knows whether it was granted. The release finds it, or refuses it
		// when it comes late.
		settled.Go(func() { _, _ = l.client.Release(within, Lease{ID: q.request.LeaseID}) })
	}
	for _, h := range *l.held.Swap(&[]*holding{}) {
		settled.Go(func() { l.settle(within, h) })
	}
	settled.Wait()
}

// closeLimiters closes all of them at once.
func (c *Client) closeLimiters(within context.Context) {
	c.mu.Lock()
	limiters := c.mu.limiters
	c.mu.limiters = nil
	c.mu.Unlock()
	var closed sync.WaitGroup
	for l := range limiters {
		closed.Go(func() { l.close(within) })
	}
	closed.Wait()
}

// settle closes a block and tells the authority what was used of it. What can't
// be told costs nothing but the refund: the lease ends by itself, charged in
// full. An excess is kept for the next block.
func (l *Limiter) settle(ctx context.Context, h *holding) {
	used, first := h.Close()
	if !first {
		return
	}
	excess := max(0, used-h.Granted())
	if l.client.machine.Away() {
		l.owe(excess)
		return
	}
	_, err := l.client.Settle(ctx, h.lease, Usage{Dimension: l.config.Dimension, Used: used})
	if errors.Is(err, ErrUnanswered) || ctx.Err() != nil {
		l.owe(excess)
	}
}

// owe keeps what was used and not paid.
func (l *Limiter) owe(tokens int64) {
	if tokens <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.owed = min(l.mu.owed+tokens, block.TokensMax)
}
