package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quorlease/quorlease/fsm/store"
)

// record is one thing to store.
type record struct {
	key        int
	value      int
	generation uint32
	place      int32
}

func (r *record) Key() int              { return r.key }
func (r *record) Generation() *uint32   { return &r.generation }
func (r *record) Place() *int32         { return &r.place }
func (r *record) Before(o *record) bool { return r.key < o.key }
func (r *record) Clone() *record        { c := *r; return &c }

// contents is what a walk finds.
func contents(t *testing.T, all func(func(*record) bool)) map[int]int {
	t.Helper()
	found := make(map[int]int)
	for r := range all {
		if _, there := found[r.key]; there {
			t.Fatalf("key %d is there twice", r.key)
		}
		found[r.key] = r.value
	}
	return found
}

// TestTableIsAMap changes a table and a map alike, and freezes both now and then:
// what was frozen stays as it was.
func TestTableIsAMap(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 7, 64} {
		t.Run(fmt.Sprint(shards, "_shards"), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(shards), 1))
			table := store.NewTable[int, record](shards)
			model := make(map[int]int)
			type kept struct {
				frozen store.Frozen[record, *record]
				model  map[int]int
			}
			var frozen []kept
			for step := range 20_000 {
				key := random.IntN(400)
				if step > 15_000 {
					key = random.IntN(20)
				}
				r := table.Find(key)
				if value, there := model[key]; there != (r != nil) || there && r.value != value {
					t.Fatalf("step %d: key %d is %v, want %v, %v", step, key, r, value, there)
				}
				switch {
				case r == nil:
					table.Insert(&record{key: key, value: step})
					model[key] = step
				case random.IntN(3) == 0:
					table.Remove(r)
					delete(model, key)
				default:
					own := table.Own(r)
					own.value = step
					model[key] = step
				}
				if table.Len() != len(model) {
					t.Fatalf("step %d: %d records, want %d", step, table.Len(), len(model))
				}
				if step%1000 == 0 {
					frozen = append(frozen, kept{table.Freeze(), maps.Clone(model)})
				}
			}
			if got := contents(t, table.All()); !maps.Equal(got, model) {
				t.Errorf("%v, want %v", got, model)
			}
			for i, f := range frozen {
				if got := contents(t, f.frozen.All()); !maps.Equal(got, f.model) || f.frozen.Len() != len(f.model) {
					t.Errorf("frozen %d: %v, want %v", i, got, f.model)
				}
			}
		})
	}
}

// TestTableRefusesWhatIsWrong: a second record with a key, and records that are
// not in it, are broken invariants.
func TestTableRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*store.Table[int, record, *record]){
		"insert twice":     func(table *store.Table[int, record, *record]) { table.Insert(&record{key: 1}) },
		"remove a strange": func(table *store.Table[int, record, *record]) { table.Remove(&record{key: 2}) },
		"own a frozen copy": func(table *store.Table[int, record, *record]) {
			old := table.Find(1)
			table.Freeze()
			table.Own(old)
			table.Own(old)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := store.NewTable[int, record](4)
			table.Insert(&record{key: 1})
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			act(table)
		})
	}
}

// TestQueueIsSorted moves records about and takes them off the top: they come in
// the order of time and key, whatever happened to them before.
func TestQueueIsSorted(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var queue store.Queue[*record]
	model := make(map[*record]int64)
	records := make([]*record, 3000)
	for i := range records {
		records[i] = &record{key: i}
	}
	for range 30_000 {
		r := records[random.IntN(len(records))]
		switch random.IntN(4) {
		case 0:
			queue.Remove(r)
			delete(model, r)
		case 1:
			if _, there := model[r]; there {
				// As after a freeze: a copy takes the record's place.
				fresh := r.Clone()
				queue.Renew(fresh)
				model[fresh] = model[r]
				delete(model, r)
				records[r.key] = fresh
			}
		default:
			at := int64(random.IntN(50))
			if random.IntN(10) == 0 {
				at = store.Never
			}
			queue.Set(r, at)
			model[r] = at
		}
	}
	if queue.Len() != len(model) {
		t.Fatalf("%d records, want %d", queue.Len(), len(model))
	}
	want := slices.SortedFunc(maps.Keys(model), func(a, b *record) int {
		if model[a] != model[b] {
			return int(min(1, max(-1, model[a]-model[b])))
		}
		return a.key - b.key
	})
	for i, r := range want {
		top, at := queue.Top()
		if top != r || at != model[r] {
			t.Fatalf("%d is key %d at %d, want key %d at %d", i, top.key, at, r.key, model[r])
		}
		queue.Remove(top)
	}
	if _, at := queue.Top(); at != store.Never || queue.Len() != 0 {
		t.Errorf("an empty queue has something at %d", at)
	}
}
