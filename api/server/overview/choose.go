package overview

import (
	"cmp"
	"slices"

	"github.com/quorlease/quorlease/cluster/overview"
	"github.com/quorlease/quorlease/cluster/queue"
)

// limitsMax are the limits that a picture has room for.
const limitsMax = 100

// pressed are the limits that are shown, in the order of their names. Where there are
// too many they are those where most wait, then those that denied and were asked most
// in the last minute: what somebody is looking for is among them.
func pressed(list []overview.Limit, waiting map[string][]queue.ClassState) []overview.Limit {
	if len(list) <= limitsMax {
		return list
	}
	order := make([]int, len(list))
	queued := make([]int64, len(list))
	for i, l := range list {
		order[i] = i
		for _, s := range waiting[l.Config.GetName()] {
			queued[i] += s.Waiting
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &list[i], &list[j]
		return cmp.Or(cmp.Compare(queued[j], queued[i]), cmp.Compare(b.Denied, a.Denied),
			cmp.Compare(b.Granted, a.Granted), cmp.Compare(i, j))
	})
	order = order[:limitsMax]
	slices.Sort(order)
	shown := make([]overview.Limit, 0, limitsMax)
	for _, i := range order {
		shown = append(shown, list[i])
	}
	return shown
}
