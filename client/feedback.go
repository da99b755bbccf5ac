package client

import (
	"context"
	"fmt"

	"github.com/quorlease/quorlease/client/feedback"
)

// Feedback tells the authority what a provider answered, at most 64 answers at once, and
// returns what became of what heard each of them. It takes no longer than ctx and
// three seconds. Others may have told the same: that does no harm. An error means
// that nobody may have heard of it.
func (c *Client) Feedback(ctx context.Context, answers ...feedback.Answer) ([]feedback.Controlled, error) {
	if c.authority.Stopped() {
		return nil, ErrClosed
	}
	done, err := feedback.Tell(ctx, c.authority.Members(), c.config.Client, answers)
	if err != nil {
		return nil, fmt.Errorf("tell what a provider answered: %w", err)
	}
	return done, nil
}
