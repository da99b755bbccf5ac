package main

import (
	"math"
	"runtime/debug"
	"testing"
)

// Not parallel: the collector is the process's.
func TestTuneCollectorLeavesTheEnvironmentsWord(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	tuneCollector(func(string) (string, bool) { return "50", true })
	if percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); percent != 100 || limit != math.MaxInt64 {
		t.Errorf("with GOGC and GOMEMLIMIT set: %d %%, %d bytes; want them left alone", percent, limit)
	}
	tuneCollector(func(string) (string, bool) { return "", false })
	if percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); percent != gcPercent || limit != memoryLimit {
		t.Errorf("with neither set: %d %%, %d bytes; want %d %%, %d bytes", percent, limit, gcPercent, memoryLimit)
	}
}
