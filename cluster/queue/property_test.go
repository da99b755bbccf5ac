package queue

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is a leader without a cluster: a queue, one bucket a class lane, and what
// is known of every waiter.
type world struct {
	t   *rapid.T
	q   *Queue
	now time.Duration
	// waiting are all who should be in the queue, by when they came.
	waiting []*Waiter
	// flying were returned by Next or More and have no fate yet, in order.
	flying []*Waiter
}

var (
	classes = []string{"live", "batch"}
	clients = []string{"a", "b", "c"}
	weights = map[string]int64{"a": 1, "b": 2, "c": 5}
	places  = []Place{{Limit: "gpt"}, {Limit: "gpt", Key: "k"}, {Limit: "slots"}}
)

func newWorld(t *rapid.T) *world {
	w := &world{t: t, q: New(Config{Max: 40, ClientMax: 25})}
	w.q.Configure(0, map[string]*Terms{
		"gpt": {
			Classes: classes, Max: 12, MaxTokens: 60, MaxWait: time.Minute, Weights: weights,
			Dimensions: []Dimension{{
				Name: "tokens", Tokens: 10, Per: time.Second,
				Parts: []Part{{Share: 3000, SubBurst: 3}, {Share: 3000, SubBurst: 3}},
			}},
		},
		"slots": {Max: 30},
	})
	return w
}

func (w *world) push() {
	place := rapid.SampledFrom(places).Draw(w.t, "place")
	one := &Waiter{
		Place: place, Client: rapid.SampledFrom(clients).Draw(w.t, "client"), Sole: rapid.Bool().Draw(w.t, "sole"),
		Costs:   []Cost{{"tokens", rapid.Int64Range(1, 9).Draw(w.t, "cost")}},
		Arrived: w.now - time.Duration(rapid.IntRange(0, 50).Draw(w.t, "held"))*ms,
		Until:   w.now + time.Duration(rapid.IntRange(0, 5000).Draw(w.t, "patience"))*ms,
	}
	if place.Limit == "gpt" {
		one.Class = rapid.SampledFrom(classes).Draw(w.t, "class")
	}
	status, ok := w.q.Push(w.now, one, time.Duration(rapid.IntRange(0, 100).Draw(w.t, "wait"))*ms)
	if status.Position < 1 || status.ETA < 0 {
		w.t.Fatalf("status %+v", status)
	}
	if ok {
		w.waiting = append(w.waiting, one)
	}
}

func (w *world) next() {
	w.expire()
	heads := w.q.Next(w.now)
	for _, head := range heads {
		w.fly(head)
		for last := head; last != nil && rapid.Bool().Draw(w.t, "more"); {
			if last = w.q.More(w.now, last, always); last != nil {
				w.fly(last)
			}
		}
	}
}

// fly checks what holds of whoever is proposed: it waits, and within its client
// nobody older of its lane waits behind it.
func (w *world) fly(one *Waiter) {
	if slices.Contains(w.flying, one) || !slices.Contains(w.waiting, one) {
		w.t.Fatalf("%v is proposed, and waits: %t", one, slices.Contains(w.waiting, one))
	}
	w.flying = append(w.flying, one)
}

func (w *world) expire() {
	for _, one := range w.q.Expire(w.now) {
		if one.Until > w.now || slices.Contains(w.flying, one) {
			w.t.Fatalf("%v expired at %v", one, w.now)
		}
		w.forget(one)
	}
}

func (w *world) forget(one *Waiter) {
	w.waiting = slices.DeleteFunc(w.waiting, func(other *Waiter) bool { return other == one })
	w.flying = slices.DeleteFunc(w.flying, func(other *Waiter) bool { return other == one })
}

// land tells the fate of one that flies.
func (w *world) land() {
	if len(w.flying) == 0 {
		return
	}
	one := w.flying[rapid.IntRange(0, len(w.flying)-1).Draw(w.t, "which")]
	if rapid.Bool().Draw(w.t, "granted") {
		w.q.Granted(w.now, one)
		w.forget(one)
		return
	}
	w.q.Denied(w.now, one, time.Duration(rapid.IntRange(0, 100).Draw(w.t, "wait"))*ms)
	w.flying = slices.DeleteFunc(w.flying, func(other *Waiter) bool { return other == one })
	if !w.q.Waits(one) {
		w.forget(one)
	}
}

func (w *world) cancel() {
	if len(w.waiting) == 0 {
		return
	}
	one := w.waiting[rapid.IntRange(0, len(w.waiting)-1).Draw(w.t, "which")]
	if w.q.Cancel(w.now, one) == slices.Contains(w.flying, one) {
		w.t.Fatalf("canceled, and flies: %t", slices.Contains(w.flying, one))
	}
	if !slices.Contains(w.flying, one) {
		w.forget(one)
	}
}

// check compares the queue with what should be in it, and its bounds.
func (w *world) check() {
	if w.q.Len() != len(w.waiting) || w.q.Len() > 40 {
		w.t.Fatalf("%d wait, want %d", w.q.Len(), len(w.waiting))
	}
	byClient := make(map[string]int)
	for _, one := range w.waiting {
		if byClient[one.Client]++; byClient[one.Client] > 25 {
			w.t.Fatalf("too many of %s", one.Client)
		}
	}
	count, tokens := make(map[Place]int64), make(map[Place]int64)
	for _, one := range w.waiting {
		count[one.Place]++
		tokens[one.Place] += one.Costs[0].Tokens
	}
	for place, n := range count {
		if limit := place.Limit; limit == "gpt" && (n > 12 || tokens[place] > 60) || n > 30 {
			w.t.Fatalf("%d with %d tokens at %v", n, tokens[place], place)
		}
		sum, asked := int64(0), int64(0)
		for _, s := range w.q.State(w.now, place) {
			sum += s.Waiting
			asked += sums(s.Tokens).of("tokens")
		}
		if sum != n || asked != tokens[place] {
			w.t.Fatalf("at %v the queue shows %d with %d tokens, want %d with %d", place, sum, asked, n, tokens[place])
		}
	}
	for _, one := range w.q.Drained() {
		if !slices.Contains(w.waiting, one) {
			w.t.Fatalf("%v is in the queue", one)
		}
	}
}

// Drained is who Drain would return, without draining.
func (q *Queue) Drained() []*Waiter {
	var all []*Waiter
	for _, p := range q.places {
		for _, l := range p.lanes {
			all = l.list(all)
		}
	}
	return all
}

// TestQueueCountsRight: whatever happens, the queue holds exactly those who wait,
// within its bounds, and nothing of those who left.
func TestQueueCountsRight(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			w.now += time.Duration(rapid.IntRange(0, 40).Draw(t, "later")) * ms
			rapid.SampledFrom([]func(){w.push, w.push, w.next, w.land, w.land, w.cancel, w.expire}).Draw(t, "step")()
			w.check()
		}
		for _, one := range slices.Clone(w.waiting) {
			w.q.Cancel(w.now, one)
		}
		for _, one := range slices.Clone(w.flying) {
			w.q.Granted(w.now, one)
		}
		if w.q.Len() != 0 || len(w.q.places)+len(w.q.clients)+w.q.due.len()+w.q.expiry.len() != 0 {
			t.Fatalf("left: %d, %v, %v", w.q.Len(), w.q.places, w.q.clients)
		}
	})
}

// serve grants the turns of a lane one by one, or in runs, and returns them.
func serve(q *Queue, now time.Duration, n, run int) []*Waiter {
	var served []*Waiter
	for len(served) < n && q.Len() > 0 {
		heads := q.Next(now)
		for len(heads) < run {
			next := q.More(now, heads[len(heads)-1], always)
			if next == nil {
				break
			}
			heads = append(heads, next)
		}
		for _, one := range heads {
			q.Granted(now, one)
			served = append(served, one)
		}
	}
	return served
}

func TestG6FairShares(t *testing.T) {
	t.Parallel()
	// Over any stretch in which two clients have waiters all the time, what each got
	// for its weight differs by no more than one request of each.
	t.Run("G6_each_client_gets_its_weighted_share", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			q := open(Terms{Weights: weights})
			most := rapid.Int64Range(1, 1000).Draw(t, "most")
			for i := range 150 {
				for _, c := range clients {
					one := waiter(c, rapid.Int64Range(1, most).Draw(t, fmt.Sprint(c, i)))
					if _, ok := q.Push(0, one, 0); !ok {
						t.Fatal("no room")
					}
				}
			}
			served := serve(q, 0, 150, rapid.IntRange(1, 8).Draw(t, "run"))
			for from := range served {
				got := make(map[string]float64)
				for _, one := range served[from:] {
					got[one.Client] += float64(one.Costs[0].Tokens) / float64(weights[one.Client])
					for _, a := range clients {
						for _, b := range clients {
							bound := float64(most)/float64(weights[a]) + float64(most)/float64(weights[b])
							if math.Abs(got[a]-got[b]) > bound+1e-3 {
								t.Fatalf("from %d: %s got %f, %s %f, at most %f apart", from, a, got[a], b, got[b], bound)
							}
						}
					}
				}
			}
		})
	})
	t.Run("G6_within_a_client_by_arrival", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			q := open(Terms{})
			for i := range 60 {
				one := waiter(rapid.SampledFrom(clients).Draw(t, "client"), 1)
				one.Arrived = time.Duration(rapid.IntRange(0, 1000).Draw(t, "arrived"))
				one.Owner = i
				q.Push(0, one, 0)
			}
			last := make(map[string]*Waiter)
			for _, one := range serve(q, 0, 60, rapid.IntRange(1, 4).Draw(t, "run")) {
				if before := last[one.Client]; before != nil && one.before(before) {
					t.Fatalf("%v came before %v and was served after", one.Arrived, before.Arrived)
				}
				last[one.Client] = one
			}
		})
	})
	t.Run("G6_newcomers_keep_nobody_out", func(t *testing.T) {
		t.Parallel()
		q := open(Terms{})
		// It has had its share, and more of it waits.
		push(t, q, 0, waiter("old", 100))
		push(t, q, 0, waiter("old", 100))
		serve(q, 0, 1, 1)
		for i := range 1000 {
			push(t, q, 0, waiter(fmt.Sprint("new", i), 1))
			if serve(q, 0, 1, 1)[0].Client == "old" {
				return
			}
		}
		t.Error("a client waits for ever while others come and go")
	})
	t.Run("G6_the_head_stays_the_head", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			q := open(Terms{Weights: weights})
			head := waiter("a", rapid.Int64Range(1, 100).Draw(t, "cost"))
			q.Push(0, head, 0)
			for now := time.Duration(0); now < 50*ms; now += ms {
				one := waiter(rapid.SampledFrom(clients).Draw(t, "client"), rapid.Int64Range(1, 100).Draw(t, "cost"))
				one.Arrived = now + 1
				q.Push(now, one, 0)
				if heads := q.Next(now); len(heads) != 1 || heads[0] != head {
					t.Fatalf("at %v the head is %v", now, heads)
				}
				q.Denied(now, head, ms)
			}
		})
	})
}
