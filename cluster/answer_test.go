package cluster

import (
	"fmt"
	"sync/atomic"
	"testing"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster/door"
	"github.com/quorlease/quorlease/cluster/retries"
	"github.com/quorlease/quorlease/cluster/usage"
)

// BenchmarkAnswer is what an answer costs that needs no entry: all that counts it, for
// 128 callers at once.
func BenchmarkAnswer(b *testing.B) {
	n := newNode(DefaultConfig())
	n.fsm.desk = retries.NewDesk("a.00000000")
	n.budgets, n.grants = n.newBudgets(n.fsm.desk), n.newGrants()
	book, err := usage.Open(usage.Config{Dir: b.TempDir(), Node: "a", Metrics: n.metrics, Logger: n.logger})
	if err != nil {
		b.Fatal(err)
	}
	n.usage = book
	defer func() { _ = n.usage.Close() }()
	limit := &logv1.Limit{Name: "l", Dimensions: []*logv1.Dimension{{Name: "requests"}}}
	n.configure([]*logv1.Limit{limit})
	result := &logv1.Result{Kind: &logv1.Result_Acquire{Acquire: &logv1.AcquireResult{Granted: true, Escrow: true}}}
	var callers atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		me := callers.Add(1)
		op := &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: &logv1.Acquire{
			Client:  fmt.Sprintf("client-%d", me),
			Charges: []*logv1.Charge{{Limit: "l", Key: fmt.Sprint(me), Dimension: "requests", Amount: 1}},
		}}}
		for pb.Next() {
			p := &Pending{Operation: op, Done: func(*logv1.Result, error) {}, node: n}
			p.item = door.Item{Operation: op, Owner: (*pendingOwner)(p)}
			n.budgets.Refused(op.GetAcquire(), 0, &p.ruling)
			p.item.Owner.Answer(result, nil)
		}
	})
}
