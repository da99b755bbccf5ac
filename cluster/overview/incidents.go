package overview

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/quorlease/quorlease/cluster/events"
	"github.com/quorlease/quorlease/cluster/incident"
)

const (
	// detailedMax are the open incidents of which everything is kept, ShownMax those
	// that are shown.
	detailedMax = 1000
	ShownMax    = 100
	// countedMax are those beyond that are counted only: more than there are clients
	// whose budget anybody watches.
	countedMax = 1 << 17
)

// Incident is something that has begun and has not ended.
type Incident struct {
	events.Event
	// Name is the client's, as it calls itself; Client is the same for people.
	Name string
}

// incidents are those that are open. They belong to whoever holds the lock around
// them.
type incidents struct {
	open map[incident.Subject]Incident
	// counted are those that open has no room for, by their digest, and what they are of.
	counted map[uint64]counted
	// ofRetries is how many of counted are.
	ofRetries int
}

// counted is what stays of an incident: whether it is of a client's retries, and the
// digest of the limit that it is about, 0 for none.
type counted struct {
	retries bool
	limit   uint64
}

func newIncidents() incidents {
	return incidents{open: make(map[incident.Subject]Incident), counted: make(map[uint64]counted)}
}

func digest(of incident.Subject) uint64 { return maphash.Comparable(seed, of) }

// take takes an event of a client, whose name is as it calls itself.
func (i *incidents) take(e events.Event, client string) {
	which, turn := incident.Of(e, client)
	switch turn {
	case incident.Ends:
		delete(i.open, which)
		i.uncount(which)
	case incident.Begins:
		if old, open := i.open[which]; open {
			// It goes on, and is what was said last.
			e.Time = old.Time
		} else if len(i.open) >= detailedMax {
			i.count(which)
			return
		}
		i.uncount(which)
		i.open[which] = Incident{Event: e, Name: client}
	case incident.Tells:
	}
}

// count counts one that there is no room for.
func (i *incidents) count(which incident.Subject) {
	digest := digest(which)
	if _, there := i.counted[digest]; there || len(i.counted) >= countedMax {
		return
	}
	one := counted{retries: which.OfClient()}
	if which.Limit != "" {
		one.limit = maphash.String(seed, which.Limit)
	}
	i.counted[digest] = one
	if which.OfClient() {
		i.ofRetries++
	}
}

func (i *incidents) uncount(which incident.Subject) {
	digest := digest(which)
	if i.counted[digest].retries {
		i.ofRetries--
	}
	delete(i.counted, digest)
}

// forgetLimits ends what is about limits that there are no more.
func (i *incidents) forgetLimits(known map[string]*limit) {
	for which := range i.open {
		if which.Limit != "" && known[which.Limit] == nil {
			delete(i.open, which)
		}
	}
	if len(i.counted) == 0 {
		return
	}
	names := make(map[uint64]bool, len(known))
	for name := range known {
		names[maphash.String(seed, name)] = true
	}
	for digest, one := range i.counted {
		if one.limit != 0 && !names[one.limit] {
			delete(i.counted, digest)
		}
	}
}

// counts are how many are open, and how many of those are of retries.
func (i *incidents) counts() (all, retries int) {
	retries = i.ofRetries
	for which := range i.open {
		if which.OfClient() {
			retries++
		}
	}
	return len(i.open) + len(i.counted), retries
}

// shown are the worst and then the oldest, at most ShownMax.
func (i *incidents) shown() []Incident {
	list := make([]Incident, 0, len(i.open))
	for _, one := range i.open {
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Incident) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), a.Time.Compare(b.Time),
			strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Client, b.Client),
			strings.Compare(a.Limit, b.Limit), strings.Compare(a.Value, b.Value))
	})
	return list[:min(len(list), ShownMax)]
}

// over are the clients that are over their budget, and since when.
func (i *incidents) over() map[string]time.Time {
	since := make(map[string]time.Time)
	for which, one := range i.open {
		if which.Kind == events.ClientOverBudget {
			since[one.Name] = one.Time
		}
	}
	return since
}
