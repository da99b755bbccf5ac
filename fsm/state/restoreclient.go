package state

import (
	"strings"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/tally"
)

func (r *restoring) addClient(saved *logv1.SnapshotClient) error {
	counted, err := tally.Load(saved)
	if err != nil {
		return err
	}
	c := &Client{Name: strings.Clone(saved.GetName()), Tally: counted}
	switch {
	case check.Text("client", c.Name, 1, check.MaxText) != nil:
		return frames.Corrupt("client %q", check.Clip(c.Name))
	case counted.Length() != r.SliceOf(c.Name):
		return frames.Corrupt("client %q: slices of %v, its retry budget has %v",
			check.Clip(c.Name), counted.Length(), r.SliceOf(c.Name))
	case r.clients.Find(c.Name) != nil || int64(r.clients.Len()) >= r.Caps.GetClients():
		return frames.Corrupt("client %q: is there twice, or more than %d", check.Clip(c.Name), r.Caps.GetClients())
	}
	r.clients.Insert(c)
	r.touchClient(c)
	return nil
}
