package escrow

import "time"

// touches remember which pots of keys were used of late, and when. Of a million keys that
// are used once each nothing else is kept. A pot has a few cells to lie in: where others
// are in all of them the oldest is forgotten, and asks for escrow a use later.
type touches struct {
	cells []touch
	// lost counts what was forgotten too early since there were last made more cells.
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

const (
	// cellsMin and cellsMax bound the cells of a shard: half a kilobyte to 32.
	cellsMin, cellsMax = 1 << 6, 1 << 12
	// choices are the cells that a pot can lie in.
	choices = 4
)

// again notes that a pot is used, and says whether and when it was before, within a life.
// That is said once.
func (t *touches) again(tag uint32, now, life time.Duration) (before time.Duration, again bool) {
	one := touch{tag, uint32(now.Milliseconds()) | 1}
	cell := t.cell(one)
	age := time.Duration(one.at-cell.at) * time.Millisecond
	fresh := cell.at != 0 && age < life
	if fresh && cell.tag == tag {
		*cell = touch{}
		return max(1, now-age), true
	}
	if fresh {
		if t.lost++; t.lost > len(t.cells)/4 && len(t.cells) < cellsMax {
			t.grow()
			cell = t.cell(one)
		}
	}
	*cell = one
	return 0, false
}

// cell is where a pot lies, or else where it may: the oldest cell, or an empty one.
func (t *touches) cell(one touch) *touch {
	if t.cells == nil {
		t.cells = make([]touch, cellsMin)
	}
	first := int(one.tag) % (len(t.cells) / choices) * choices
	best := &t.cells[first]
	for i := range choices {
		switch c := &t.cells[first+i]; {
		case c.at == 0:
			best = c
		case c.tag == one.tag:
			return c
		case best.at != 0 && one.at-c.at > one.at-best.at:
			best = c
		}
	}
	return best
}

func (t *touches) grow() {
	before := t.cells
	t.cells, t.lost = make([]touch, 2*len(before)), 0
	for _, one := range before {
		if one.at != 0 {
			*t.cell(one) = one
		}
	}
}
