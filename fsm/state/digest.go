package state

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// The tags keep records of different kinds apart. They are part of the state
// hash: never change one. 5 and 9 are those of package record.
const (
	tagState  = 1
	tagLimit  = 2
	tagKey    = 4
	tagClient = 6
)

func digestCaps(sum *digest.Sum, caps *logv1.Caps) {
	sum.Int(caps.GetKeys())
	sum.Int(caps.GetLeases())
	sum.Int(caps.GetLimits())
	sum.Int(caps.GetClients())
}

func sumLineage(l *lineage.Lineage) uint64 {
	sum := digest.New(tagLimit)
	l.Digest(&sum)
	return sum.Value()
}
