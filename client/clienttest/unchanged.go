package clienttest

import (
	"context"
	"fmt"

	"github.com/quorlease/quorlease/cluster"
)

// unchanged refuses to change members: tests say by themselves who is one.
type unchanged struct{}

func (unchanged) refuse() (cluster.Change, error) {
	return cluster.Change{}, fmt.Errorf("%w: the members of a test stay", cluster.ErrChangeRefused)
}

func (u unchanged) AddMember(context.Context, string, string) (cluster.Change, error) {
	return u.refuse()
}

func (u unchanged) RemoveMember(context.Context, string) (cluster.Change, error) { return u.refuse() }

func (u unchanged) Promote(context.Context, string) (cluster.Change, error) { return u.refuse() }

func (u unchanged) Demote(context.Context, string) (cluster.Change, error) { return u.refuse() }

func (u unchanged) TransferLeadership(context.Context, string) (cluster.Change, error) {
	return u.refuse()
}
