package calendar

import (
	"slices"
	"time"
)

// HeardMax is how old what a voter said of its clock may be.
const HeardMax = 2 * time.Second

// SkewMax is how far a node's clock may be from the median before an event says so.
const SkewMax = 5 * time.Second

// Reading is what one voter's clock shows.
type Reading struct {
	// Node is the name of the voter.
	Node string
	// Wall is in Unix nanoseconds, carried on to now.
	Wall int64
	// Age is how long ago it was heard.
	Age time.Duration
}

// Median is the middle one of the clocks of voters that were heard within HeardMax,
// the earlier one of two. ok is false where they are no majority of the voters: then
// nobody knows the time.
func Median(readings []Reading, voters int) (wall int64, ok bool) {
	var clocks []int64
	for _, r := range readings {
		if r.Age <= HeardMax {
			clocks = append(clocks, r.Wall)
		}
	}
	if 2*len(clocks) <= voters {
		return 0, false
	}
	slices.Sort(clocks)
	return clocks[(len(clocks)-1)/2], true
}

// Skew is a node whose clock is far from the median.
type Skew struct {
	Node string
	// By is how much it is ahead, negative where it is behind.
	By time.Duration
}

// skews finds whose clocks have gone away from the median since the last time; away
// remembers whom it has named. One is named again only when it was close in between,
// within half of what is far: a clock at the edge is one event.
func skews(readings []Reading, median int64, away map[string]bool) []Skew {
	var found []Skew
	for _, r := range readings {
		by := time.Duration(r.Wall - median)
		switch {
		case r.Age > HeardMax:
		case by.Abs() > SkewMax && !away[r.Node]:
			away[r.Node] = true
			found = append(found, Skew{r.Node, by})
		case by.Abs() < SkewMax/2:
			delete(away, r.Node)
		}
	}
	return found
}
