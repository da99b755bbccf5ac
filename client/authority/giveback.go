package authority

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

// Abandon sees to it that a tracked lease which nobody will use is given back, if
// it was granted at all: its caller left, or was answered by this client itself. A
// release that overtakes its acquire is remembered and refuses it (T23).
func (a *Authority) Abandon(id string) {
	select {
	case a.abandoned <- id:
	default:
	}
}

// giveBack releases what was abandoned, one after the other.
func (a *Authority) giveBack(ctx context.Context) {
	for {
		select {
		case id := <-a.abandoned:
			a.giveBackOne(ctx, id)
		case <-ctx.Done():
			return
		}
	}
}

func (a *Authority) giveBackOne(ctx context.Context, id string) {
	message := &quorleasev1.RequestItem{Operation: &quorleasev1.RequestItem_Release{
		Release: &quorleasev1.ReleaseRequest{LeaseId: id, Client: a.config.Members.Client},
	}}
	for range giveBackTries {
		bounded, cancel := context.WithTimeout(ctx, givingBack)
		_, err := a.Ask(bounded, &Question{Message: message, Safe: true, patient: true})
		cancel()
		// Whatever was answered, it is dealt with: what was not granted is not found.
		if !errors.Is(err, ErrUnanswered) || !Pause(ctx, givingBack) {
			return
		}
	}
}
