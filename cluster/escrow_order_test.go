package cluster_test

import (
	"context"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// TestAsksComeAfterDenials: an ask is not on its way while an entry is being applied that
// may promise its bucket to somebody.
func TestAsksComeAfterDenials(t *testing.T) {
	t.Parallel()
	t.Run("T46", func(t *testing.T) {
		t.Parallel()
		c := clustertest.New(t, 1, clustertest.Options{})
		n := c.Node(c.Leader())
		limit := hot("gpt", 100, 1000)
		limit.Keyed, limit.MaxKeys = true, 10
		c.ApplyLimits(c.Names()[0], limit)
		of := func(amount int64) *logv1.Operation {
			op := plainly("gpt", amount)
			op.Charges[0].Key = "k"
			return &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: op}}
		}
		if r, err := n.Do(t.Context(), of(300), 0); err != nil || !r.GetAcquire().GetGranted() {
			t.Fatal(r, err)
		}
		submit := func(op *logv1.Operation) <-chan *logv1.Result {
			done := make(chan *logv1.Result, 1)
			n.Submit(&cluster.Pending{Operation: op, Done: func(r *logv1.Result, err error) {
				if err != nil {
					t.Error(err)
				}
				done <- r
			}})
			return done
		}
		// While somebody reads, nothing is applied.
		var denied, asked <-chan *logv1.Result
		err := n.View(context.Background(), true, func(*fsm.Machine, bucket.Instant) {
			denied = submit(of(990))
			<-time.After(100 * time.Millisecond)
			asked = submit(&logv1.Operation{Kind: &logv1.Operation_AskEscrow{AskEscrow: &logv1.AskEscrow{
				Id: &logv1.EscrowID{Node: "b", Boot: 1, Sequence: 1}, Limit: "gpt", Key: "k",
				Dimension: "requests", Amount: 100,
			}}})
			<-time.After(100 * time.Millisecond)
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := <-denied; r.GetAcquire().GetGranted() || len(r.GetAcquire().GetDenials()) == 0 {
			t.Fatalf("not denied: %v", r)
		}
		if r := (<-asked).GetEscrow(); r.GetOutcome() != logv1.EscrowResult_OUTCOME_CONTENDED || r.GetWait() == 0 {
			t.Errorf("took from what was promised: %v", r)
		}
	})
}
