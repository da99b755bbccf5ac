package state

import (
	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// The tags keep records of different kinds apart. They are part of the state
// hash: never change one. 5 and 9 are those of package record.
const (
	tagState    = 1
	tagLimit    = 2
	tagBudget   = 3
	tagKey      = 4
	tagClient   = 6
	tagNode     = 7
	tagRevision = 8
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

func sumBudget(b *logv1.RetryBudget) uint64 {
	sum := digest.New(tagBudget)
	digestBudget(&sum, b)
	return sum.Value()
}

func digestBudget(sum *digest.Sum, b *logv1.RetryBudget) {
	sum.Bool(b != nil)
	if b == nil {
		return
	}
	sum.Text(b.GetName())
	sum.Text(b.GetClient())
	sum.Word(uint64(b.GetMaxRetries()))
	sum.Int(b.GetMaxFraction())
	sum.Int(b.GetWindow())
	sum.Int(b.GetMinRequests())
	sum.Int(b.GetRetryAfter())
	if b.GetMinRetries()|b.GetMinRetriesInterval()|b.GetWarnFraction()|b.GetWarnFor() == 0 &&
		b.GetScope() == 0 && b.GetMode() == 0 {
		// A budget of an older program has the digest that it always had.
		return
	}
	sum.Int(b.GetMinRetries())
	sum.Int(b.GetMinRetriesInterval())
	sum.Int(int64(b.GetScope()))
	sum.Int(int64(b.GetMode()))
	sum.Int(b.GetWarnFraction())
	sum.Int(b.GetWarnFor())
}

func sumNode(n *logv1.NodeRecord) uint64 {
	sum := digest.New(tagNode)
	sum.Text(n.GetRaftId())
	sum.Text(n.GetName())
	sum.Text(n.GetPeer())
	sum.Text(n.GetGrpc())
	sum.Text(n.GetHttp())
	sum.Text(n.GetVersion())
	return sum.Value()
}

func sumRevision(r *Revision) uint64 {
	sum := digest.New(tagRevision)
	sum.Word(r.Revision)
	sum.Int(int64(r.Now))
	sum.Int(r.Wall)
	sum.Text(r.Author)
	sum.Word(uint64(len(r.Changes)))
	for _, c := range r.Changes {
		sum.Text(c.GetName())
		lineage.DigestLimit(&sum, c.GetLimitBefore())
		lineage.DigestLimit(&sum, c.GetLimitAfter())
		digestBudget(&sum, c.GetBudgetBefore())
		digestBudget(&sum, c.GetBudgetAfter())
	}
	return sum.Value()
}
