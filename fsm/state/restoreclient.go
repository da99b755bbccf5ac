package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/window"
)

func (r *restoring) addClient(saved *logv1.SnapshotClient) error {
	c := &Client{Name: saved.GetName(), slice: time.Duration(saved.GetSliceLength())}
	switch {
	case check.Text("client", c.Name, 1, check.MaxText) != nil:
		return frames.Corrupt("client %q", check.Clip(c.Name))
	case c.slice != r.SliceOf(c.Name):
		return frames.Corrupt("client %q: slices of %v, its retry budget has %v",
			check.Clip(c.Name), c.slice, r.SliceOf(c.Name))
	case r.clients.Find(c.Name) != nil || int64(r.clients.Len()) >= r.Caps.GetClients():
		return frames.Corrupt("client %q: is there twice, or more than %d", check.Clip(c.Name), r.Caps.GetClients())
	case len(saved.GetSources()) > maxSources:
		return frames.Corrupt("client %q: %d sources, at most %d", check.Clip(c.Name), len(saved.GetSources()), maxSources)
	}
	for i, s := range saved.GetSources() {
		if i > 0 && c.sources[i-1].compare(s.GetNode(), s.GetBoot()) >= 0 ||
			check.Text("node", s.GetNode(), 1, check.MaxText) != nil {
			return frames.Corrupt("client %q: source %q is out of order", check.Clip(c.Name), check.Clip(s.GetNode()))
		}
		c.sources = append(c.sources, source{node: strings.Clone(s.GetNode()), boot: s.GetBoot()})
		if err := loadCounts(&c.sources[i].counts, s.GetCounts()); err != nil {
			return err
		}
	}
	r.clients.Insert(c)
	r.touchClient(c)
	return nil
}

func loadCounts(counts *window.Counts, saved []*logv1.SnapshotCount) error {
	ascend := slices.IsSortedFunc(saved, func(a, b *logv1.SnapshotCount) int {
		return cmp.Compare(a.GetSlice(), b.GetSlice())
	})
	if len(saved) > window.Slices+2 || !ascend {
		return frames.Corrupt("%d counts, at most %d in order", len(saved), window.Slices+2)
	}
	for _, one := range saved {
		if one.GetSlice() < 0 || one.GetTotal() < 0 || one.GetRetries() < 0 ||
			one.GetTotal() > savedCountMost || one.GetRetries() > savedCountMost {
			return frames.Corrupt("count %d of %d in slice %d", one.GetRetries(), one.GetTotal(), one.GetSlice())
		}
		counts.Add(one.GetSlice(), one.GetTotal(), one.GetRetries())
	}
	return nil
}

// savedCountMost: when a retry budget gets longer slices, counts are added up.
const savedCountMost = MaxCount * window.Slices
