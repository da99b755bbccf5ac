package retries

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/retry"
	"github.com/quorlease/quorlease/fsm/window"
)

// freesKept bounds the clients whose way back is remembered for a slice.
const freesKept = 1024

// Desk decides acquires by their client's retry budget, with the counts of the
// node's replica. It is safe for concurrent use.
type Desk struct {
	// Counter counts what the desk admits.
	Counter *Counter
	node    string
	boot    uint64

	mu sync.Mutex
	// frees remembers when a refused client's window lets it through: in a storm
	// the same question comes thousands of times a second.
	frees map[string]frees
}

// frees is an answer that holds during one slice.
type frees struct {
	slice int64
	at    bucket.Instant
}

// NewDesk returns the desk of a process of the node with that Raft id.
func NewDesk(node string) *Desk {
	var b [8]byte
	// crypto/rand.Read never fails: it ends the program instead.
	_, _ = rand.Read(b[:])
	d := &Desk{node: node, boot: binary.LittleEndian.Uint64(b[:]), frees: make(map[string]frees)}
	d.Counter = New(Config{Node: node, Boot: d.boot})
	return d
}

// Ask is one acquire to decide on.
type Ask struct {
	// At is the node's own steady clock, Now the authority time to decide by.
	At      time.Duration
	Now     bucket.Instant
	Client  string
	Attempt uint32
	// Nodes is the number of serving nodes, as in Request.
	Nodes int
}

// Decide returns the denial of an acquire, or nil and its hold. held is false
// where no retry budget fits the client. The caller holds the lock that also
// covers applying an entry.
func (d *Desk) Decide(m *fsm.Machine, ask Ask) (denial *logv1.Denial, hold Hold, held bool) {
	budget := m.BudgetFor(ask.Client)
	if budget == nil {
		return nil, Hold{}, false
	}
	rule := fsm.RuleOf(budget)
	total, retried := m.ClientCounts(ask.Now, ask.Client)
	decision, hold := d.Counter.Decide(ask.At, ask.Now, Request{
		Client: ask.Client, Attempt: ask.Attempt, Rule: rule, Total: total, Retries: retried, Nodes: ask.Nodes,
		Counted: func(slice int64) (int64, int64) { return m.Counted(d.node, d.boot, ask.Client, slice) },
	})
	denial = &logv1.Denial{Reason: logv1.Reason_REASON_RETRY_BUDGET, RetryAfter: int64(decision.RetryAfter)}
	switch decision.Verdict {
	case Admit:
		return nil, hold, true
	case Attempts:
		denial.Reason = logv1.Reason_REASON_ATTEMPTS
	case Budget:
		denial.FreesIn = int64(d.freesAt(m, ask, rule) - ask.Now)
	case PartUsedUp:
	}
	return denial, Hold{}, false
}

// freesAt is the beginning of the first slice in which the window would let the
// client through, if it asked nothing more until then.
func (d *Desk) freesAt(m *fsm.Machine, ask Ask, rule retry.Rule) bucket.Instant {
	length := window.Length(rule.Window)
	slice := window.At(int64(ask.Now), length)
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.frees[ask.Client]; ok && known.slice == slice {
		return known.at
	}
	at := bucket.Instant((slice + window.Slices) * int64(length))
	for k := slice + 1; k < slice+window.Slices; k++ {
		start := bucket.Instant(k * int64(length))
		total, retried := m.ClientCounts(start, ask.Client)
		if rule.Decide(total, retried, ask.Attempt) == retry.Admit {
			at = start
			break
		}
	}
	if len(d.frees) >= freesKept {
		clear(d.frees)
	}
	d.frees[ask.Client] = frees{slice: slice, at: at}
	return at
}

// Restored compares what is kept with a replica that a snapshot replaced. The
// caller holds the lock that also covers applying an entry.
func (d *Desk) Restored(m *fsm.Machine) {
	d.Counter.Reconcile(func(client string, slice int64) (total, retries int64) {
		return m.Counted(d.node, d.boot, client, slice)
	})
}
