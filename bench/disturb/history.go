package disturb

import (
	"sync"
	"time"

	"github.com/quorlease/quorlease/bench/check"
	"github.com/quorlease/quorlease/bench/stat"
)

// outcome is what became of a question.
type outcome uint8

const (
	// fromEscrow and byEntry: a node granted it.
	fromEscrow outcome = iota
	byEntry
	// denied: a node refused it.
	denied
	// alone: nobody answered in time, and the client decided by itself.
	alone
	// failed: an error.
	failed
)

func (o outcome) granted() bool { return o == fromEscrow || o == byEntry }

// record is one question, from its intended time to its answer. Times are nanoseconds
// since the history began.
type record struct {
	intended, answered int64
	// ends is when the lease does, 0 where there is none.
	ends int64
	// late is by how much after its intended time it was asked, in microseconds.
	late    uint32
	key     uint16
	outcome outcome
}

func (r *record) waited() time.Duration { return time.Duration(r.answered - r.intended) }

// pages of a history are written by some callers each, so that they do not wait for one
// another.
const pages = 64

// blockLength is how many records have room in a block of a page.
const blockLength = 4096

// history is everything that was asked of one limit. It may be written by many at the
// same time, and is read when nobody does.
type history struct {
	began time.Time
	pages [pages]struct {
		mu sync.Mutex
		// blocks are full but for the last one: a list that grew would be copied, and its
		// writers would wait.
		blocks [][]record
	}
	mu sync.Mutex
	// leases that were acknowledged, where they have ids. Guarded by mu.
	leases []string
}

func newHistory(began time.Time) *history { return &history{began: began} }

func (h *history) since(at time.Time) int64 { return int64(at.Sub(h.began)) }

// note adds a record; number is that of the question.
func (h *history) note(number uint64, r record) {
	page := &h.pages[number%pages]
	page.mu.Lock()
	last := len(page.blocks) - 1
	if last < 0 || len(page.blocks[last]) == blockLength {
		page.blocks = append(page.blocks, make([]record, 0, blockLength))
		last++
	}
	page.blocks[last] = append(page.blocks[last], r)
	page.mu.Unlock()
}

func (h *history) acknowledge(lease string) {
	h.mu.Lock()
	h.leases = append(h.leases, lease)
	h.mu.Unlock()
}

func (h *history) each(do func(r *record)) {
	for i := range h.pages {
		for _, block := range h.pages[i].blocks {
			for j := range block {
				do(&block[j])
			}
		}
	}
}

// span is a stretch of time, in nanoseconds since the history began.
type span struct{ from, until int64 }

func (s span) has(at int64) bool { return at >= s.from && at < s.until }

// seen is what callers saw in a span.
type seen struct {
	asked, granted, escrow, denied, alone, failed int64
	waits                                         *stat.Latencies
	// longest is how long the slowest answer took, of a node or of the client.
	longest time.Duration
	// at is when that was asked for.
	at int64
}

// in sums up what was meant to be asked in a span.
func (h *history) in(s span) seen {
	sum := seen{waits: stat.NewLatencies()}
	h.each(func(r *record) {
		if !s.has(r.intended) {
			return
		}
		sum.asked++
		switch r.outcome {
		case fromEscrow:
			sum.granted++
			sum.escrow++
		case byEntry:
			sum.granted++
		case denied:
			sum.denied++
		case alone:
			sum.alone++
		case failed:
			sum.failed++
		}
		sum.waits.Record(r.waited())
		if r.waited() > sum.longest {
			sum.longest, sum.at = r.waited(), r.intended
		}
	})
	return sum
}

// tokens is how many were granted by nodes, one each.
func (h *history) tokens() (n int64) {
	h.each(func(r *record) {
		if r.outcome.granted() {
			n++
		}
	})
	return n
}

// excess is the most of any key that clients can have spent above burst + rate·d.
func (h *history) excess(spec check.Spec, keys int) (worst check.Excess) {
	held := make([][]check.Held, keys)
	h.each(func(r *record) {
		if r.outcome.granted() {
			held[r.key] = append(held[r.key], check.Held{From: r.answered, Until: max(r.answered, r.ends), Tokens: 1})
		}
	})
	for _, list := range held {
		if one := check.Spendable(spec, list); one.Tokens > worst.Tokens {
			worst = one
		}
	}
	return worst
}

// late is by how much after its time a question was asked at most.
func (h *history) late(s span) (most time.Duration) {
	h.each(func(r *record) {
		if s.has(r.intended) {
			most = max(most, time.Duration(r.late)*time.Microsecond)
		}
	})
	return most
}
