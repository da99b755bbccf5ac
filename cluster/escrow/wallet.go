package escrow

import (
	"container/heap"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// Config says whose wallet it is.
type Config struct {
	// Node is the node's Raft id, Boot drawn at random by this process (T7).
	Node string
	Boot uint64
	// Elapsed is the node's own clock, which goes on while the machine sleeps (T5).
	Elapsed func() time.Duration
	// Failover is how long the cluster may be without a leader.
	Failover time.Duration
}

// keysMax bounds the keys that a wallet knows (G10).
const keysMax = 1 << 20

// Wallet is what one node may grant by itself. Safe for concurrent use.
type Wallet struct {
	config Config
	books  atomic.Pointer[books]
	closed atomic.Bool
	// applied is when the node last applied an entry, on its own clock.
	applied atomic.Int64
	// known is how many keys the wallet knows.
	known atomic.Int64
	wake  chan struct{}

	// hot are keys that the steward is to look at. The lock is the last that anybody
	// takes.
	hot struct {
		sync.Mutex
		list []*holding
	}

	// mu comes before the locks of shards.
	mu       sync.Mutex
	sequence uint64
	// random draws pauses, other ones in each process.
	random *rand.Rand
	// asks are those whose fate is not known, ledger what they brought, both by
	// sequence, as long as it lives.
	asks   map[uint64]*ask
	ledger map[uint64]*portion
	// leases are reservations whose fate is not known, by lease id.
	leases map[string][]*Reservation
	alarms alarms
	// retired are keys of limits as they were.
	retired []retired
	// backs are what goes back at the next step.
	backs   *Return
	backsAt time.Duration
	outcome Outcomes
	past    past
}

// Outcomes count what became of asks.
type Outcomes struct{ Granted, Contended, None, Lost uint64 }

// New returns the wallet of a process. It grants nothing until Configure.
func New(c Config) *Wallet {
	w := &Wallet{
		config: c, wake: make(chan struct{}, 1), random: rand.New(rand.NewPCG(c.Boot, 0)),
		asks: make(map[uint64]*ask), ledger: make(map[uint64]*portion), leases: make(map[string][]*Reservation),
	}
	w.books.Store(&books{})
	w.applied.Store(int64(c.Elapsed()))
	return w
}

// Close ends granting.
func (w *Wallet) Close() { w.closed.Store(true) }

// Wake has a signal when Step has something to do before it said.
func (w *Wallet) Wake() <-chan struct{} { return w.wake }

func (w *Wallet) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// look has the steward look at a key that was marked as queued.
func (w *Wallet) look(h *holding) {
	w.hot.Lock()
	w.hot.list = append(w.hot.list, h)
	w.hot.Unlock()
	w.nudge()
}

// Knows reports whether a limit may have escrow.
func (w *Wallet) Knows(limit string) bool { return w.books.Load().byLimit[limit] != nil }

// Revision is that of the limits that the wallet knows.
func (w *Wallet) Revision() uint64 { return w.books.Load().revision }

// Configure says which limits may have escrow, as of a revision. What is held of
// another version is void: it goes back, and the keys that were in use are asked for
// anew.
func (w *Wallet) Configure(revision uint64, list []*Terms) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.books.Load()
	next := &books{revision: revision, byLimit: make(map[string]*book, len(list))}
	var fresh []*book
	for _, t := range list {
		b := before.byLimit[t.Limit]
		if b == nil || !t.same(b.terms.Load()) {
			b = newBook(t)
			fresh = append(fresh, b)
		}
		b.terms.Store(t)
		b.turn.Add(1)
		next.byLimit[t.Limit] = b
	}
	w.books.Store(next)
	for _, b := range fresh {
		if len(b.shards) == 1 {
			// There is one key: it will be used.
			w.warmLocked(b, "", nil)
		}
	}
	for limit, b := range before.byLimit {
		if next.byLimit[limit] != b {
			w.retireLocked(b, next.byLimit[limit])
		}
	}
	w.nudge()
}

// warmLocked brings a key into being that is likely to be used. from is what it was
// in another version, if anything.
func (w *Wallet) warmLocked(b *book, key string, from *holding) {
	s := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	h := w.holdingLocked(b, s, key)
	if h == nil {
		return
	}
	terms := b.terms.Load()
	for i := range h.pots {
		p := &h.pots[i]
		if from == nil {
			p.warm = true
			continue
		}
		old := from.book.terms.Load()
		at := old.pot(terms.Dimensions[i/terms.classes()].Name, terms.className(i))
		if at >= 0 && at < len(from.pots) && from.pots[at].demand.last > 0 {
			p.demand, p.warm = from.pots[at].demand, true
		}
	}
	w.queueLocked(h)
}

// retired are keys of a book that was replaced, by next or by none.
type retired struct {
	next *book
	keys map[string]*holding
}

// retireLocked ends granting from a book: nobody finds its keys any more. What they hold
// goes back step by step, since there may be a million of them and an entry waits. next
// is the book that replaces it.
func (w *Wallet) retireLocked(b, next *book) {
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		if len(s.keys) > 0 {
			w.retired = append(w.retired, retired{next: next, keys: s.keys})
		}
		s.keys, s.touched, s.over = nil, touches{}, true
		s.mu.Unlock()
	}
}

// drainLocked sends back what retired keys hold, some of them, and has those asked for
// anew that were in use.
func (w *Wallet) drainLocked(now time.Duration) {
	for left := looksMax; left > 0 && len(w.retired) > 0; {
		last := &w.retired[len(w.retired)-1]
		for key, h := range last.keys {
			if left == 0 {
				return
			}
			left--
			delete(last.keys, key)
			h.shard.mu.Lock()
			w.voidLocked(now, h)
			w.leaveLocked(h)
			h.dropped = true
			h.shard.mu.Unlock()
			w.known.Add(-1)
			if last.next != nil {
				w.warmLocked(last.next, key, h)
			}
		}
		w.retired = w.retired[:len(w.retired)-1]
	}
}

// leaveLocked has the asks of a key forgotten in time that nobody looks at any more: one
// whose fate is not known is not sent again. Both locks are held.
func (w *Wallet) leaveLocked(h *holding) {
	for i := range h.pots {
		if a := h.pots[i].ask; a != nil {
			heap.Push(&w.alarms, alarm{at: a.until, sequence: a.op.GetId().GetSequence()})
		}
	}
}

// voidLocked ends what is held of a key. It goes back: the record stays returnable.
// Both locks are held.
func (w *Wallet) voidLocked(now time.Duration, h *holding) {
	h.voids++
	for i := range h.pots {
		p := &h.pots[i]
		for _, one := range p.portions {
			if one.unspent > 0 && now < one.until {
				w.backLocked(now, one)
			}
			one.void = true
		}
		p.portions = nil
	}
}

// Void ends what is held of a key of a limit.
func (w *Wallet) Void(limit, key string) {
	b := w.books.Load().byLimit[limit]
	if b == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.keys[key]; h != nil {
		w.voidLocked(w.config.Elapsed(), h)
		w.queueLocked(h)
	}
}

// holdingLocked is that of a key, which is made where there is room; nil where there is
// none. The shard's lock is held.
func (w *Wallet) holdingLocked(b *book, s *shard, key string) *holding {
	h := s.keys[key]
	if h != nil {
		return h
	}
	if s.over || w.known.Load() >= keysMax {
		return nil
	}
	w.known.Add(1)
	// An acquire's texts may hold on to its whole message.
	key = strings.Clone(key)
	terms := b.terms.Load()
	h = &holding{book: b, shard: s, key: key, pots: make([]pot, len(terms.Dimensions)*terms.classes())}
	if s.keys == nil {
		s.keys = make(map[string]*holding)
	}
	s.keys[key] = h
	return h
}

// queueLocked has the steward look at a key. The shard's lock is held.
func (w *Wallet) queueLocked(h *holding) {
	if !h.queued {
		h.queued = true
		w.look(h)
	}
}

// Held is what is held of each limit at this moment, in tokens.
func (w *Wallet) Held() map[string]int64 {
	now := w.config.Elapsed()
	all := w.books.Load().byLimit
	held := make(map[string]int64, len(all))
	for limit, b := range all {
		sum := int64(0)
		for i := range b.shards {
			s := &b.shards[i]
			s.mu.Lock()
			for _, h := range s.keys {
				for p := range h.pots {
					sum += h.pots[p].leftLocked(now)
				}
			}
			s.mu.Unlock()
		}
		held[limit] = sum
	}
	return held
}

// Outcomes are what became of asks so far.
func (w *Wallet) Outcomes() Outcomes {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcome
}

// id is the name of an ask of this process.
func (w *Wallet) id(sequence uint64) *logv1.EscrowID {
	return &logv1.EscrowID{Node: w.config.Node, Boot: w.config.Boot, Sequence: sequence}
}

// mine reports whether an id is one of this process's.
func (w *Wallet) mine(id *logv1.EscrowID) bool {
	return id != nil && id.GetBoot() == w.config.Boot && id.GetNode() == w.config.Node
}

// alarm is when to look at a key again, or to forget a sequence or a lease.
type alarm struct {
	at       time.Duration
	holding  *holding
	sequence uint64
	lease    string
}

// alarms are a heap, the next first. An alarm that was put off is passed over when it
// comes.
type alarms []alarm

// Len implements heap.Interface.
func (a *alarms) Len() int { return len(*a) }

// Less implements heap.Interface.
func (a *alarms) Less(i, j int) bool { return (*a)[i].at < (*a)[j].at }

// Swap implements heap.Interface.
func (a *alarms) Swap(i, j int) { (*a)[i], (*a)[j] = (*a)[j], (*a)[i] }

// Push implements heap.Interface.
func (a *alarms) Push(x any) { *a = append(*a, x.(alarm)) }

// Pop implements heap.Interface.
func (a *alarms) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	(*a)[last] = alarm{}
	*a = (*a)[:last]
	return x
}

// setLocked has the steward look at h no later than at.
func (w *Wallet) setLocked(h *holding, at time.Duration) {
	if h.due != 0 && h.due <= at {
		return
	}
	h.due = at
	heap.Push(&w.alarms, alarm{at: at, holding: h})
}
