package permit_test

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
)

// newLimiter limits this process to what the provider allows.
func newLimiter() (*rate.Limiter, error) {
	return rate.NewLimiter(100, 100), nil
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
