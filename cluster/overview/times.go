package overview

import (
	"math/bits"
	"time"
)

const (
	// parts is into how many a doubling of the time is divided: a time is known within
	// a quarter.
	parts = 4
	// timesLen is enough for two minutes in microseconds.
	timesLen = 27 * parts
)

// times counts how long decisions took.
type times [timesLen]uint32

// slot is where a time is counted.
func slot(took time.Duration) int {
	micros := uint64(max(took, 0) / time.Microsecond)
	if micros < parts {
		return int(micros)
	}
	// The two bits after the first.
	octave := bits.Len64(micros) - 3
	return min(octave*parts+int(micros>>octave), timesLen-1)
}

// upTo is the time that what is counted in a slot is below.
func upTo(slot int) time.Duration {
	if slot < parts {
		return time.Duration(slot+1) * time.Microsecond
	}
	octave := slot/parts - 1
	return time.Duration(uint64(slot%parts+parts+1)<<octave) * time.Microsecond
}

func (t *times) add(o *times) {
	for i, n := range o {
		t[i] += n
	}
}

// p95 is what 95 of a hundred took at most, ok is false where there is none.
func (t *times) p95() (took time.Duration, ok bool) {
	total := uint64(0)
	for _, n := range t {
		total += uint64(n)
	}
	seen := uint64(0)
	for i, n := range t {
		if seen += uint64(n); total > 0 && seen*100 >= total*95 {
			return upTo(i), true
		}
	}
	return 0, false
}
