package store

// shard is an open hash table: a record lies in the cell that its hash names, or
// in the first empty one after it. It grows by half, so that it is between
// half and three quarters full, and keeps the hash beside the record, so that a
// search looks into records that can be the right one only.
type shard[P any] struct {
	generation uint32
	count      int
	cells      []cell[P]
}

// cell is empty where hash is 0.
type cell[P any] struct {
	hash   uint32
	record P
}

const smallestShard = 8

// home is the cell that a hash names: the hash as a fraction of the cells.
func (s *shard[P]) home(hash uint32) int {
	return int(uint64(hash) * uint64(len(s.cells)) >> 32)
}

func (s *shard[P]) next(i int) int {
	if i++; i < len(s.cells) {
		return i
	}
	return 0
}

// find is the cell of a key, or -1.
func find[K comparable, R any, P Record[K, R]](s *shard[P], hash uint32, key K) int {
	if s.count == 0 {
		return -1
	}
	for i := s.home(hash); s.cells[i].hash != 0; i = s.next(i) {
		if s.cells[i].hash == hash && s.cells[i].record.Key() == key {
			return i
		}
	}
	return -1
}

func (s *shard[P]) insert(hash uint32, record P) {
	if (s.count+1)*4 > len(s.cells)*3 {
		s.resize(max(smallestShard, len(s.cells)+len(s.cells)/2))
	}
	s.put(hash, record)
	s.count++
}

func (s *shard[P]) put(hash uint32, record P) {
	i := s.home(hash)
	for s.cells[i].hash != 0 {
		i = s.next(i)
	}
	s.cells[i] = cell[P]{hash, record}
}

// remove empties cell i and closes the gap: a record behind it moves up unless
// it would come before the cell that its hash names.
func (s *shard[P]) remove(i int) {
	for j := s.next(i); s.cells[j].hash != 0; j = s.next(j) {
		if s.distance(s.home(s.cells[j].hash), j) >= s.distance(i, j) {
			s.cells[i] = s.cells[j]
			i = j
		}
	}
	s.cells[i] = cell[P]{}
	s.count--
	switch {
	case s.count == 0:
		s.cells = nil
	case len(s.cells) > smallestShard && s.count*4 < len(s.cells):
		s.resize(max(smallestShard, len(s.cells)/2))
	}
}

// distance is how many steps lead from cell i to cell j.
func (s *shard[P]) distance(i, j int) int {
	if j >= i {
		return j - i
	}
	return j - i + len(s.cells)
}

func (s *shard[P]) resize(size int) {
	old := s.cells
	s.cells = make([]cell[P], size)
	for _, c := range old {
		if c.hash != 0 {
			s.put(c.hash, c.record)
		}
	}
}
