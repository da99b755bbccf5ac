package record

import (
	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// Revision is one change of limits and retry budgets. It must not be changed.
type Revision struct {
	Revision uint64
	// Now is authority time, Wall the leader's wall clock in Unix nanoseconds.
	Now     bucket.Instant
	Wall    int64
	Author  string
	Changes []*logv1.LimitChange
	// Size is what Measure found last.
	Size int
}

// Measure finds the size on the wire, which is the same everywhere even where the bytes
// are not.
func (r *Revision) Measure() {
	r.Size = len(r.Author)
	for _, c := range r.Changes {
		r.Size += proto.Size(c)
	}
}

// Sum is the digest of the record.
func (r *Revision) Sum() uint64 {
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

// Save is the revision for a snapshot.
func (r *Revision) Save() *logv1.SnapshotRevision {
	return &logv1.SnapshotRevision{
		Revision: r.Revision, Now: int64(r.Now), Wall: r.Wall, Author: r.Author, Changes: r.Changes,
	}
}

// LoadRevision makes a revision of what Save made.
func LoadRevision(saved *logv1.SnapshotRevision) *Revision {
	return &Revision{
		Revision: saved.GetRevision(), Now: bucket.Instant(saved.GetNow()), Wall: saved.GetWall(),
		Author: saved.GetAuthor(), Changes: saved.GetChanges(),
	}
}

// SumBudget is the digest of a retry budget.
func SumBudget(b *logv1.RetryBudget) uint64 {
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

// SumNode is the digest of a member.
func SumNode(n *logv1.NodeRecord) uint64 {
	sum := digest.New(tagNode)
	sum.Text(n.GetRaftId())
	sum.Text(n.GetName())
	sum.Text(n.GetPeer())
	sum.Text(n.GetGrpc())
	sum.Text(n.GetHttp())
	sum.Text(n.GetVersion())
	return sum.Value()
}
