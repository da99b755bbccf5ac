package client_test

import (
	"context"
	"fmt"

	"github.com/quorlease/quorlease/client"
)

// newLimiter limits all processes to what the provider allows.
func newLimiter() (*client.Limiter, error) {
	return authority.Limiter(client.LimiterConfig{Limit: "provider"})
}

// callAll calls the provider ten times, as fast as it may.
func callAll(ctx context.Context) error {
	limiter, err := newLimiter()
	if err != nil {
		return err
	}
	for call := range 10 {
		if err := limiter.Wait(ctx); err != nil {
			return err
		}
		fmt.Println("call", call)
	}
	return nil
}
