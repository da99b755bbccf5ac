package fsm_test

import (
	"testing"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/fsmtest"
)

// TestG10WarnedParts: who changes again and again at which parts of a quota is warned
// does not fill every key with the parts of before, of which a snapshot has no more
// than there can be.
func TestG10WarnedParts(t *testing.T) {
	t.Parallel()
	t.Run("G10", func(t *testing.T) {
		t.Parallel()
		d := fsmtest.New(t)
		limit := hourly(1_000_000)
		d.Entry(&logv1.Entry{Stamp: 1, Operations: []*logv1.Operation{
			fsmtest.Apply(limit), fsmtest.Acquire("", fsmtest.Charge("hourly", "k", "requests", 900_000)),
		}})
		for change := range int64(100) {
			limit.Warn = nil
			for part := range int64(16) {
				limit.Warn = append(limit.Warn, 1+change*16+part)
			}
			d.Entry(&logv1.Entry{Stamp: 2 + change, Operations: []*logv1.Operation{
				fsmtest.Apply(limit), fsmtest.Acquire("", fsmtest.Charge("hourly", "k", "requests", 1)),
			}})
		}
		fsmtest.Restored(t, d.Machine)
	})
}
