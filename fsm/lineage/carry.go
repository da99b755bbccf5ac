package lineage

import "github.com/quorlease/quorlease/fsm/bucket"

// Pass takes what a key holds, which has passed a version, to the version now.
// It takes held over: give it a copy.
func (l *Lineage) Pass(key string, held []Held, passed uint32) []Held {
	for i := passed - l.Versions[0].Number + 1; int(i) < len(l.Versions); i++ {
		from, to := l.Versions[i-1], l.Versions[i]
		held = carry(from.For(key), to.For(key), held, to.Since)
	}
	return held
}

// carry takes what a key holds from one variant to another. In a new window its
// dimensions are others, so that its buckets are the pristine ones, and leases of
// before don't return to them.
func carry(from, to *Variant, held []Held, since bucket.Instant) []Held {
	next := make([]Held, len(to.Dimensions))
	for i := range to.Dimensions {
		d := &to.Dimensions[i]
		at := from.FindID(d.ID)
		if at < 0 {
			next[i].Bucket = d.Pristine.Clone()
			continue
		}
		next[i] = held[at]
		if old := &from.Dimensions[at]; !old.alike(d) {
			next[i].Bucket.Advance(old.Shape, since)
			d.take(old, &next[i].Bucket)
		}
	}
	return next
}
