package escrow

import "time"

// Record is what the replicated state knows of one ask of this process.
type Record struct {
	Sequence uint64
	Amount   int64
	Void     bool
	// Left is its life, by the time of the state.
	Left time.Duration
}

// Restored takes the records of this process in a state that replaced the one of
// before. Entries were skipped: what the records say is all that there is (T43).
func (w *Wallet) Restored(records []Record) {
	w.applied.Store(int64(w.config.Elapsed()))
	known := make(map[uint64]Record, len(records))
	for _, r := range records {
		known[r.Sequence] = r
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.config.Elapsed()
	for sequence, one := range w.ledger {
		r, there := known[sequence]
		if there && !r.Void {
			continue
		}
		h := one.at
		h.shard.mu.Lock()
		if there && one.reserved == 0 && now < one.until {
			w.backLocked(now, one)
		}
		one.void, one.unspent = true, 0
		w.queueLocked(h)
		h.shard.mu.Unlock()
	}
	for sequence, a := range w.asks {
		// Life counts from the first sending, and what is left of it may be less.
		if r, there := known[sequence]; there && !r.Void {
			w.installLocked(now, a, r.Amount, a.sent+r.Left-r.Left/driftPart)
		}
	}
}
