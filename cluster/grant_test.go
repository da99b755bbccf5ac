package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/escrow"
	"github.com/quorlease/quorlease/cluster/usage"
)

// TestGrantKeepsNothing: what was granted at once may be written over, operation and
// answer, while others look at what was counted.
func TestGrantKeepsNothing(t *testing.T) {
	t.Parallel()
	inBubbleOf(t, 1, nil, func(b bubble) {
		limit := hot("gpt", 1_000_000, 1_000_000)
		limit.Keyed, limit.Per = true, []string{"key"}
		b.ApplyLimits(b.Leader(), limit)
		n := b.Node(b.Leader())
		looked := make(chan struct{})
		stop := make(chan struct{})
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		go func() {
			defer close(looked)
			for {
				select {
				case <-stop:
					return
				case <-ticker.C:
					n.Usage(b.Context(), usage.Query{By: usage.ByClient, Hours: 1, Top: 100})
					n.Overview().View(time.Now())
				}
			}
		}()
		charge := &logv1.Charge{}
		acquire := &logv1.Acquire{Charges: []*logv1.Charge{charge}}
		op := &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: acquire}}
		var room escrow.Room
		pace := time.NewTicker(time.Millisecond)
		defer pace.Stop()
		granted := 0
		for i := range 4000 {
			acquire.Client, acquire.Class = fmt.Sprint("client-", i%8), ""
			charge.Limit, charge.Key, charge.Dimension, charge.Amount = "gpt", fmt.Sprint("key-", i%8), "requests", 1
			room.Clear()
			p := &cluster.Pending{Operation: op, Team: fmt.Sprint("team-", i%8)}
			if answer := n.Grant(p, &room).GetAcquire(); answer == nil {
				if _, err := n.Acquire(b.Context(), proto.CloneOf(acquire), 0); err != nil {
					b.Fatal(err)
				}
			} else if granted++; !answer.GetGranted() || !answer.GetEscrow() || answer.GetCharges()[0] != charge {
				b.Fatalf("answer %d: %v", i, answer)
			}
			acquire.Client, acquire.Class = "poison", "poison"
			charge.Limit, charge.Key, charge.Dimension, charge.Amount = "poison", "poison", "poison", -1
			<-pace.C
		}
		close(stop)
		<-looked
		rows := n.Usage(b.Context(), usage.Query{By: usage.ByClient, Hours: 1, Top: 100}).Rows
		sum := int64(0)
		for _, row := range rows {
			if sum += row.Granted; strings.Contains(fmt.Sprint(row), "poison") {
				b.Errorf("counted: %v", row)
			}
		}
		if sum != 4000 || granted < 2000 || len(rows) != 8 {
			b.Errorf("%d tokens in %d rows, %d granted at once", sum, len(rows), granted)
		}
	})
}
