package gateway

import (
	"sync"
	"time"

	"github.com/quorlease/quorlease/fsm/retry"
)

// balance pays for the further tries of all requests to one deployment, so that a provider
// that fails for everybody is not sent everything three times. It is safe for concurrent
// use.
type balance struct {
	mu     sync.Mutex
	tokens retry.Tokens // guarded by mu
}

// pays says whether one more try is paid for, and pays.
func (b *balance) pays(now time.Duration, rule retry.TokenRule) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens.Retry(int64(now), rule)
}

// refund adds what a success is worth.
func (b *balance) refund(rule retry.TokenRule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens.Success(rule)
}
