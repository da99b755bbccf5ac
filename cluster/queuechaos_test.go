package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
)

// Under random partitions, with callers who leave and leases that are given back,
// each waiter is answered once, no more is granted than the limit allows, and
// nobody is left in the queue.
func TestWaitingUnderPartitions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("G1_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(b bubble) { testWaitingUnderPartitions(b, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func testWaitingUnderPartitions(b bubble, chance *rand.Rand) {
	const burst, perSecond = 10, 20
	c := b.Cluster
	limit := queued(clustertest.Rate("gpt", perSecond, time.Second, burst))
	limit.Classes = []*logv1.Class{{Name: "live", Share: 3000, Burst: 3000}, {Name: "batch", Share: 2000}}
	c.ApplyLimits("a", limit)
	start, tokens, answered, handed := time.Now(), int64(0), 0, 0
	answers := make(chan outcome, 10_000)
	for round := range 20 {
		if round%4 != 3 {
			c.Partition(c.Names()[chance.IntN(3)])
		}
		for range 10 {
			n := c.Node(c.Names()[chance.IntN(3)])
			op := by(clustertest.Track("gpt", 1+chance.Int64N(4)), fmt.Sprint("client", chance.IntN(3)), "")
			if chance.IntN(2) == 0 {
				op.Class = "batch"
			}
			handed++
			p := &cluster.Pending{
				Operation: &logv1.Operation{Kind: &logv1.Operation_Acquire{Acquire: op}},
				MaxWait:   time.Duration(chance.IntN(4000)) * time.Millisecond,
				Done:      func(r *logv1.Result, err error) { answers <- outcome{result: r, err: err} },
			}
			n.Submit(p)
			pass(time.Duration(chance.IntN(60)) * time.Millisecond)
			if chance.IntN(6) == 0 {
				n.Cancel(p)
			}
		}
		c.Heal()
		pass(time.Second)
	}
	pass(10 * time.Second)
	for len(answers) > 0 {
		o := <-answers
		answered++
		for _, charge := range o.result.GetAcquire().GetCharges() {
			tokens += charge.GetAmount()
		}
	}
	if answered != handed {
		b.Errorf("%d answers to %d acquires", answered, handed)
	}
	if most := burst + int64(time.Since(start)*perSecond/time.Second); tokens > most || tokens < 100 {
		b.Errorf("%d tokens granted in %v, at most %d", tokens, time.Since(start), most)
	}
	if waits := b.waiting("gpt"); waits != 0 {
		b.Errorf("%d still wait", waits)
	}
	c.RequireSameState()
}
