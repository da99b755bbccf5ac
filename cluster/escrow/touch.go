package escrow

import "time"

// touches remember which pots of keys were used of late, and when. Of a million keys that
// are used once each nothing else is kept. A pot lies in one cell only: one that another
// was put in place of is forgotten, and asks for escrow a use later.
type touches struct {
	cells []touch
	// lost counts what was forgotten too early since the cells were last made more.
	lost int
}

// touch is empty where at is 0.
type touch struct {
	// tag is a hash: of two pots with the same one asks too early, which only costs an
	// entry.
	tag uint32
	// at is in milliseconds, and odd.
	at uint32
}

// cellsMin and cellsMax bound the cells of a shard: half a kilobyte to 32.
const cellsMin, cellsMax = 1 << 6, 1 << 12

// again notes that a pot is used, and says whether and when it was before, within a life.
// That is said once.
func (t *touches) again(tag uint32, now, life time.Duration) (before time.Duration, again bool) {
	at := uint32(now.Milliseconds()) | 1
	cell := t.cell(tag)
	age := time.Duration(at-cell.at) * time.Millisecond
	fresh := cell.at != 0 && age < life
	if fresh && cell.tag == tag {
		*cell = touch{}
		return max(1, now-age), true
	}
	if fresh {
		if t.lost++; t.lost > len(t.cells)/4 && len(t.cells) < cellsMax {
			t.grow()
			cell = t.cell(tag)
		}
	}
	*cell = touch{tag, at}
	return 0, false
}

func (t *touches) cell(tag uint32) *touch {
	if t.cells == nil {
		t.cells = make([]touch, cellsMin)
	}
	return &t.cells[int(tag)%len(t.cells)]
}

func (t *touches) grow() {
	before := t.cells
	t.cells, t.lost = make([]touch, 2*len(before)), 0
	for _, one := range before {
		*t.cell(one.tag) = one
	}
}
