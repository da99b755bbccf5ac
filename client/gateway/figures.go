package gateway

import (
	"sync/atomic"

	"github.com/quorlease/quorlease/client/gateway/provider"
	"github.com/quorlease/quorlease/client/gateway/refuse"
)

// reasons and classes are how many of them there are to count by.
const (
	reasons = int(refuse.Malformed) + 1
	classes = int(provider.Other) + 1
)

// count adds one to what is counted by a kind. What has no place counts as the first one,
// which is what such a reason is told as.
func count[K ~int](by []atomic.Uint64, kind K) {
	if kind < 0 || int(kind) >= len(by) {
		kind = 0
	}
	by[kind].Add(1)
}

// counted reads what was counted by kinds, and returns the sum.
func counted(to []uint64, by []atomic.Uint64) (sum uint64) {
	for i := range by {
		to[i] = by[i].Load()
		sum += to[i]
	}
	return sum
}
