package client

import (
	"context"
	"errors"
	"time"

	quorleasev1 "github.com/quorlease/quorlease/api/quorlease/v1"
)

const (
	// abandonedMax is how many leases wait to be given back at a time. One that finds
	// no place ends by itself, charged in full.
	abandonedMax = 1024
	// givingBack bounds one attempt, and giveBackTries how many there are: by then
	// the lease has ended.
	givingBack    = 2 * time.Second
	giveBackTries = 3
)

// abandon sees to it that a tracked lease which nobody will use is given back, if
// it was granted at all: its caller left, or was answered by this client itself. A
// release that overtakes its acquire is remembered and refuses it (T23).
func (c *Client) abandon(id string) {
	select {
	case c.abandoned <- id:
	default:
	}
}

// giveBack releases what was abandoned, one after the other.
func (c *Client) giveBack(ctx context.Context) {
	for {
		select {
		case id := <-c.abandoned:
			c.giveBackOne(ctx, id)
		case <-ctx.Done():
			return
		}
	}
}

func (c *Client) giveBackOne(ctx context.Context, id string) {
	message := &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Release{
		Release: &quorleasev1.ReleaseRequest{LeaseId: id, Client: c.config.Client},
	}}
	for range giveBackTries {
		bounded, cancel := context.WithTimeout(ctx, givingBack)
		_, err := c.ask(bounded, &question{message: message, safe: true, patient: true})
		cancel()
		// Whatever was answered, it is dealt with: what was not granted is not found.
		if !errors.Is(err, ErrUnanswered) || !pause(ctx, givingBack) {
			return
		}
	}
}
