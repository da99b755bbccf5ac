package bucket

import "testing"

// tape is a source of bytes. At its end everything is 0.
type tape struct{ left []byte }

func (p *tape) upTo(_ string, most int64) int64 {
	value := int64(0)
	for room := most; room > 0 && len(p.left) > 0; room >>= 8 {
		value = value<<8 | int64(p.left[0])
		p.left = p.left[1:]
	}
	return value % (most + 1)
}

// FuzzHistory plays the bytes as a spec and operations, against the oracle.
func FuzzHistory(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 200 {
			// More steps find nothing new, but slow the search down.
			data = data[:200]
		}
		src := &tape{data}
		h := newHistory(t, src)
		for len(src.left) > 0 {
			h.run(1)
		}
	})
}

// FuzzFromState takes any numbers as a saved state: it refuses them, or the
// bucket is in range and can be used.
func FuzzFromState(f *testing.F) {
	f.Add(int64(0), int64(1), int64(2), int64(3))
	f.Add(int64(1)<<62, int64(40), int64(0), int64(1)<<62)
	f.Fuzz(func(t *testing.T, last, free, level, debt int64) {
		s := mustShape(t, shared(1e9, 10, ClassSpec{5000, 6}, ClassSpec{2500, 3}))
		b, err := FromState(s, State{
			Last: Instant(last), Free: free, Levels: []int64{level, level / 2}, Debts: []int64{debt, debt / 3},
		})
		if err != nil {
			return
		}
		requireInRange(t, &b, s)
		b.Excess(s, batch, debt)
		b.Refund(s, live, level, free)
		if at, ok := b.FullAt(s); ok {
			b.Advance(s, at)
			if full := s.Full(at); !b.Equal(&full) {
				t.Fatalf("%+v at %d, want %+v", b, at, full)
			}
		}
		requireInRange(t, &b, s)
	})
}
