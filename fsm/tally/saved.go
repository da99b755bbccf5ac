package tally

import (
	"slices"
	"strings"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/frames"
	"github.com/quorlease/quorlease/fsm/window"
)

// Digest adds the tally to a digest. What only newer programs count comes last
// and only where it is there: a client without it has the digest that it always
// had.
func (t *Tally) Digest(sum *digest.Sum) {
	sum.Int(int64(t.length))
	more := len(t.minutes) > 0
	for i := range t.sources {
		s := &t.sources[i]
		sum.Text(s.Node)
		sum.Word(s.Boot)
		sum.Word(uint64(len(s.slices)))
		for _, one := range s.slices {
			sum.Int(one.at)
			sum.Int(one.Total)
			sum.Int(one.Retries)
			more = more || one.Throttled|one.Denied|one.Early != 0
		}
		more = more || s.fault != Fault{}
	}
	if more {
		t.digestMore(sum)
	}
}

func (t *Tally) digestMore(sum *digest.Sum) {
	for i := range t.sources {
		s := &t.sources[i]
		for _, one := range s.slices {
			sum.Int(one.Throttled)
			sum.Int(one.Denied)
			sum.Int(one.Early)
		}
		sum.Text(s.fault.Text)
		sum.Int(s.fault.Times)
		sum.Int(s.faultAt)
	}
	for _, m := range t.minutes {
		sum.Int(m.at)
		sum.Int(m.throttled)
	}
}

// Save writes the tally into a client's record.
func (t *Tally) Save(to *logv1.SnapshotClient) {
	to.SliceLength = int64(t.length)
	for i := range t.sources {
		from := &t.sources[i]
		source := &logv1.SnapshotSource{
			Node: from.Node, Boot: from.Boot,
			Error: from.fault.Text, Errors: from.fault.Times, ErrorSlice: from.faultAt,
		}
		for _, one := range from.slices {
			source.Counts = append(source.Counts, &logv1.SnapshotCount{
				Slice: one.at, Total: one.Total, Retries: one.Retries,
				Throttled: one.Throttled, Denied: one.Denied, Early: one.Early,
			})
		}
		to.Sources = append(to.Sources, source)
	}
	for _, m := range t.minutes {
		to.Minutes = append(to.Minutes, &logv1.SnapshotCount{Slice: m.at, Throttled: m.throttled})
	}
}

// Load reads a tally from a client's record. It takes nothing that Save would not
// have written.
func Load(saved *logv1.SnapshotClient) (Tally, error) {
	t := New(time.Duration(saved.GetSliceLength()))
	who := check.Clip(saved.GetName())
	switch {
	case t.length < 1:
		return t, frames.Corrupt("client %q: slices of %v", who, t.length)
	case len(saved.GetSources()) > maxSources:
		return t, frames.Corrupt("client %q: %d sources, at most %d", who, len(saved.GetSources()), maxSources)
	}
	for i, s := range saved.GetSources() {
		from := source{
			Process: Process{strings.Clone(s.GetNode()), s.GetBoot()},
			fault:   Fault{strings.Clone(s.GetError()), s.GetErrors()}, faultAt: s.GetErrorSlice(),
		}
		switch {
		case i > 0 && t.sources[i-1].compare(from.Process) >= 0, check.Text("node", from.Node, 1, check.MaxText) != nil:
			return t, frames.Corrupt("client %q: source %q is out of order", who, check.Clip(from.Node))
		case check.Text("error", from.fault.Text, 0, MaxFault) != nil, from.fault.Times < 0, from.fault.Times > sumMost,
			from.faultAt < 0:
			return t, frames.Corrupt("client %q: error %q, %d times", who, check.Clip(from.fault.Text), from.fault.Times)
		}
		var err error
		if from.slices, err = loadSlices(s.GetCounts()); err != nil {
			return t, err
		}
		t.sources = append(t.sources, from)
	}
	var err error
	t.minutes, err = loadMinutes(saved.GetMinutes())
	return t, err
}

func loadSlices(saved []*logv1.SnapshotCount) ([]slice, error) {
	if most := window.Slices + window.Ahead + 1; len(saved) > most || !ascends(saved) {
		return nil, frames.Corrupt("%d counts, at most %d in order", len(saved), most)
	}
	list := make([]slice, 0, len(saved))
	for _, s := range saved {
		one := slice{s.GetSlice(), Count{s.GetTotal(), s.GetRetries(), s.GetThrottled(), s.GetDenied(), s.GetEarly()}}
		if !one.isInRange() {
			return nil, frames.Corrupt("count %+v in slice %d", one.Count, one.at)
		}
		list = append(list, one)
	}
	return list, nil
}

func (s *slice) isInRange() bool {
	if s.at < 0 {
		return false
	}
	for _, n := range []int64{s.Total, s.Retries, s.Throttled, s.Denied, s.Early} {
		if n < 0 || n > sumMost {
			return false
		}
	}
	return true
}

func loadMinutes(saved []*logv1.SnapshotCount) ([]minute, error) {
	if len(saved) > hour || !ascends(saved) {
		return nil, frames.Corrupt("%d minutes, at most %d in order", len(saved), hour)
	}
	var list []minute
	for _, s := range saved {
		if s.GetSlice() < 0 || s.GetThrottled() < 1 || s.GetThrottled() > sumMost {
			return nil, frames.Corrupt("%d throttled in minute %d", s.GetThrottled(), s.GetSlice())
		}
		list = append(list, minute{s.GetSlice(), s.GetThrottled()})
	}
	return list, nil
}

// ascends says that no slice is there twice, and each comes after the one before.
func ascends(saved []*logv1.SnapshotCount) bool {
	for i := range saved[min(1, len(saved)):] {
		if saved[i].GetSlice() >= saved[i+1].GetSlice() {
			return false
		}
	}
	return true
}

// Equal says whether two tallies are the same.
func (t *Tally) Equal(o *Tally) bool {
	return t.length == o.length && slices.Equal(t.minutes, o.minutes) &&
		slices.EqualFunc(t.sources, o.sources, func(a, b source) bool {
			return a.Process == b.Process && a.fault == b.fault && a.faultAt == b.faultAt && slices.Equal(a.slices, b.slices)
		})
}
