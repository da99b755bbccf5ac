package overview

import (
	"cmp"
	"hash/maphash"
	"slices"
)

// sketch counts the names that come most often in a fixed number of places: a new
// name takes the place of the rarest one, with its count (space saving). Whatever
// makes up more than one part in places of everything is among them, and no count is
// too low. It belongs to whoever holds the lock around it.
type sketch struct {
	places []place
	// used is how many of them are taken.
	used int
}

// place is one name. Its bytes stay when another name takes it over, so that counting
// takes no memory once names as long as these have come.
type place struct {
	hash  uint64
	name  []byte
	count int64
}

// seed is drawn once: which names collide is not for clients to choose.
var seed = maphash.MakeSeed()

func newSketch(places int) sketch { return sketch{places: make([]place, places)} }

// add counts a name n times.
func (s *sketch) add(name string, n int64) {
	hash := maphash.String(seed, name)
	rarest := 0
	for i := range s.places[:s.used] {
		p := &s.places[i]
		if p.hash == hash && string(p.name) == name {
			p.count += n
			return
		}
		if p.count < s.places[rarest].count {
			rarest = i
		}
	}
	if s.used < len(s.places) {
		rarest = s.used
		s.used++
	}
	p := &s.places[rarest]
	p.hash, p.name = hash, append(p.name[:0], name...)
	p.count += n
}

// halve makes what was common a while ago give way to what is common now.
func (s *sketch) halve() {
	kept := 0
	for i := range s.places[:s.used] {
		if s.places[i].count /= 2; s.places[i].count > 0 {
			s.places[kept], s.places[i] = s.places[i], s.places[kept]
			kept++
		}
	}
	for i := kept; i < s.used; i++ {
		s.places[i].count = 0
	}
	s.used = kept
}

// most is the name that came most often, ok is false where none did.
func (s *sketch) most() (name string, ok bool) {
	best := -1
	for i := range s.places[:s.used] {
		if best < 0 || s.places[i].count > s.places[best].count {
			best = i
		}
	}
	if best < 0 {
		return "", false
	}
	return string(s.places[best].name), true
}

// names are all of them, the most common first.
func (s *sketch) names() []string {
	places := slices.Clone(s.places[:s.used])
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(b.count, a.count) })
	list := make([]string, 0, len(places))
	for _, p := range places {
		list = append(list, string(p.name))
	}
	return list
}
