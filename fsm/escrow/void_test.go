package escrow_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// voiding is keys of which nodes hold some, and what lies in their buckets.
type voiding struct {
	*testing.T
	random *rand.Rand
	m      *fsm.Machine
	now    time.Duration
	limit  *logv1.Limit
	keys   []string
	// held is what nodes may have spent of each id before they hear that it is void.
	held map[*logv1.EscrowID]int64
	of   map[*logv1.EscrowID]string
}

func (v *voiding) apply(operations ...*logv1.Operation) []*logv1.Result {
	results, _ := v.m.Apply(v.m.Index()+1, &logv1.Entry{Stamp: int64(v.now), Operations: operations})
	return results
}

func (v *voiding) levels() (list []int64) {
	v.Helper()
	for _, key := range v.keys {
		in, err := v.m.Glance(bucket.Instant(v.now), "api", key)
		if err != nil {
			v.Fatal(err)
		}
		list = append(list, in.Buckets[0].Level)
	}
	return list
}

// lend has nodes ask for some.
func (v *voiding) lend(sequence *uint64) {
	for range 1 + v.random.IntN(4) {
		key, class := v.keys[v.random.IntN(len(v.keys))], []string{"live", "batch"}[v.random.IntN(2)]
		*sequence++
		id := fsmtest.EscrowID(fmt.Sprint("n", v.random.IntN(3)), 1, *sequence)
		c := fsmtest.Charge("api", key, "requests", 1+v.random.Int64N(100))
		if n := v.apply(fsmtest.Ask(id, c, class))[0].GetEscrow().GetAmount(); n > 0 {
			v.held[id], v.of[id] = n, key
		}
	}
}

// end is something that ends what nodes hold: of one key, or of all.
func (v *voiding) end() (op *logv1.Operation, key string, all bool) {
	key = v.keys[v.random.IntN(len(v.keys))]
	signal := func(kind logv1.Signal_Kind, wait time.Duration) *logv1.Operation {
		return fsmtest.Operation(&logv1.Feedback{Signals: []*logv1.Signal{
			{Kind: kind, Limit: "api", Key: key, Wait: int64(wait)},
		}})
	}
	switch v.random.IntN(4) {
	case 0:
		return signal(logv1.Signal_KIND_THROTTLED, time.Second), key, false
	case 1:
		return signal(logv1.Signal_KIND_SPEND_CAP, 0), key, false
	case 2:
		return fsmtest.Operation(&logv1.ApplyLimits{Delete: []string{"api"}}), "", true
	default:
		v.limit = proto.CloneOf(v.limit)
		v.limit.Lease++
		v.limit.Dimensions[0].Amount += v.random.Int64N(2)
		return fsmtest.Apply(v.limit), "", true
	}
}

// TestWhatIsVoidIsNobodys: at the instant at which what nodes hold ends, by a change, a
// deletion, a pause or a block, no bucket has more than before; and what comes back later is
// what its node gives back.
func TestWhatIsVoidIsNobodys(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		t.Run(fmt.Sprintf("T9_seed_%d", seed), func(t *testing.T) {
			t.Parallel()
			v := &voiding{
				T: t, random: rand.New(rand.NewPCG(seed, 9)), m: fsm.New(), keys: []string{"a", "b"},
				held: make(map[*logv1.EscrowID]int64), of: make(map[*logv1.EscrowID]string),
			}
			d := &logv1.Dimension{Name: "requests", Amount: 100, Interval: int64(time.Second), Burst: 1000}
			v.limit = fsmtest.Keyed("api", d)
			v.limit.Escrow, v.limit.Lease = int64(3*time.Second), int64(time.Second)
			v.limit.Classes = []*logv1.Class{{Name: "live", Share: 5_000, Burst: 3_000}, {Name: "batch"}}
			v.apply(fsmtest.Apply(v.limit))
			sequence := uint64(0)
			for range 3 {
				v.lend(&sequence)
				v.now += time.Duration(v.random.Int64N(int64(200 * time.Millisecond)))
			}
			v.apply()
			before := v.levels()
			op, key, all := v.end()
			if v.apply(op)[0].GetRefusal() != nil {
				t.Fatalf("%v was refused", op)
			}
			deleted := op.GetApplyLimits().GetDelete() != nil
			if deleted {
				// A bucket is looked at when there is a limit again.
				v.apply(fsmtest.Apply(v.limit))
			}
			after := v.levels()
			for i := range after {
				if after[i] > before[i] {
					t.Errorf("%v: key %s had %d tokens, and has %d", op, v.keys[i], before[i], after[i])
				}
			}
			for h := range v.m.Escrow().Held("n0", 1) {
				if want := all || h.Key == key; h.Void != want {
					t.Errorf("%v: %+v", op, h)
				}
			}
			v.backs(after)
		})
	}
}

// backs has nodes give back a part of what they have.
func (v *voiding) backs(before []int64) {
	v.Helper()
	unspent := make(map[string]int64)
	for id, n := range v.held {
		left := v.random.Int64N(n + 1)
		unspent[v.of[id]] += left
		v.apply(fsmtest.Return(id, left))
	}
	for i, level := range v.levels() {
		if key := v.keys[i]; level > before[i]+unspent[key] {
			v.Errorf("key %s had %d tokens, %d came back, and it has %d", key, before[i], unspent[key], level)
		}
	}
}
