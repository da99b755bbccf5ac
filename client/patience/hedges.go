package patience

import "sync/atomic"

const (
	// answersFor is how many answers pay for one hedge: a tenth of all questions are asked
	// twice at most, however slow the nodes are.
	answersFor = 10
	// hedgesMost is how many can be saved up: those who wait for a node that dies, all at
	// once.
	hedgesMost = 1000
)

// Hedges is a budget of questions that are asked of another node although the first one
// may still answer, as gRPC throttles retries: answers fill it, and each hedge takes from it.
// Where everybody is slow it is soon empty, and nothing is asked twice because of that. It
// begins with a hundred. It takes no lock and is safe for concurrent use. Make one with
// NewHedges.
type Hedges struct{ tenths atomic.Int64 }

// NewHedges returns a budget.
func NewHedges() *Hedges {
	h := &Hedges{}
	h.tenths.Store(hedgesMost)
	return h
}

// Answered adds what an answer is worth.
func (h *Hedges) Answered() {
	if h.tenths.Load() < hedgesMost*answersFor {
		h.tenths.Add(1)
	}
}

// Left says whether a hedge can be paid.
func (h *Hedges) Left() bool { return h.tenths.Load() >= answersFor }

// Pay pays for a hedge that was made.
func (h *Hedges) Pay() { h.tenths.Add(-answersFor) }
