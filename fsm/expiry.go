package fsm

import (
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// sweepMost bounds how many records of each kind one entry expires or drops, so
// that a million keys that end together don't hold up the log for a second. The
// rest follow with the next entries, in the order of the time at which they were
// due. Nothing depends on when: a lease is looked at as ended, and a key is as
// one never seen, from the moment itself.
const sweepMost = 1 << 15

// sweep does what has become due, before the operations of an entry. What is due
// follows from the state alone, so that every node does it in the same entry
// (A11).
func (m *Machine) sweep() {
	m.sweepLeases()
	m.sweepLimits()
	m.sweepClients()
}

func (m *Machine) sweepLeases() {
	now := int64(m.clock.now)
	for range sweepMost {
		l, at := m.openLeases.Top()
		if at > now {
			break
		}
		m.expire(l)
	}
	for range sweepMost {
		l, at := m.deadLeases.Top()
		if at > now {
			break
		}
		m.forgetLease(l)
	}
}

func (m *Machine) sweepLimits() {
	for range sweepMost {
		lim, at := m.dueLimits.Top()
		if at > int64(m.clock.now) {
			return
		}
		if k, due := lim.keys.Top(); due <= int64(m.clock.now) {
			m.sweepKey(lim, k)
		} else {
			m.sweepLimit(lim)
		}
		if m.limitsByID[lim.ID] != nil {
			m.dueLimits.Set(lim, int64(lim.due()))
		}
	}
}

// sweepKey drops a key that has become as one never seen. One that was full
// under an old version of its limit goes on to the version now.
func (m *Machine) sweepKey(lim *limit, k *key) {
	k = m.current(lim, k)
	if k.pristine(lim.Now(), m.clock.now) {
		m.dropKey(lim, k)
		return
	}
	for i := range lim.Now().Dimensions {
		k.held(i).Bucket.Advance(lim.Now().Dimensions[i].Shape, m.clock.now)
	}
	m.sealKey(k)
}

func (m *Machine) dropKey(lim *limit, k *key) {
	k.touched = false
	lim.keys.Remove(k)
	lim.pass(k.passed, -1)
	m.keys.Remove(k)
}

// sweepLimit forgets removed dimensions, or a limit that was deleted and of which
// nothing is left to remember.
func (m *Machine) sweepLimit(lim *limit) {
	if lim.live() {
		m.setLineage(lim, lim.Forget(m.clock.now))
		return
	}
	m.dueLimits.Remove(lim)
	m.sum -= lim.digest
	delete(m.limits, lim.Name)
	delete(m.limitsByID, lim.ID)
}

// touched lists the records that the entry has changed.
type touched struct {
	limits  []*limit
	keys    []*key
	leases  []*lease
	clients []*client
}

// touchKey returns the key to change. Pointers to the key of before are void.
func (m *Machine) touchKey(lim *limit, k *key) *key {
	if k.touched {
		return k
	}
	own := m.keys.Own(k)
	if own != k {
		lim.keys.Renew(own)
	}
	own.touched = true
	m.sum -= own.digest
	m.touched.keys = append(m.touched.keys, own)
	m.touchLimit(lim)
	return own
}

func (m *Machine) touchLimit(lim *limit) {
	if !lim.touched {
		lim.touched = true
		m.touched.limits = append(m.touched.limits, lim)
	}
}

// current returns the key to change, carried to the version now of its limit.
func (m *Machine) current(lim *limit, k *key) *key {
	k = m.touchKey(lim, k)
	if now := lim.Now().Number; k.passed != now {
		k.hold(lim.Carry(k.all(lim.At(k.passed)), k.passed))
		lim.pass(k.passed, -1)
		lim.pass(now, 1)
		k.passed = now
	}
	return k
}

// newKey adds a key that was never seen.
func (m *Machine) newKey(lim *limit, name string) *key {
	k := &key{name: name, limit: lim.ID, passed: lim.Now().Number}
	k.hold(lim.Now().Fresh(m.clock.now))
	m.keys.Insert(k)
	lim.keys.Set(k, int64(lineage.Never))
	lim.pass(k.passed, 1)
	return m.touchKey(lim, k)
}

// pass counts keys by the version that they have passed.
func (l *limit) pass(version uint32, by int) {
	l.passed[version] += by
	if l.passed[version] == 0 {
		delete(l.passed, version)
	}
}

// seal ends an entry: what was touched gets its new digest and its new place in
// what is due.
func (m *Machine) seal() {
	for _, k := range m.touched.keys {
		m.sealKey(k)
	}
	for _, l := range m.touched.leases {
		if l.touched {
			l.touched = false
			l.digest = l.sum()
			m.sum += l.digest
		}
	}
	for _, c := range m.touched.clients {
		m.sealClient(c)
	}
	for _, lim := range m.touched.limits {
		m.sealLimit(lim)
	}
	m.touched.reset()
}

func (m *Machine) sealKey(k *key) {
	if !k.touched {
		return
	}
	k.touched = false
	lim := m.limitsByID[k.limit]
	v := lim.At(k.passed)
	k.digest = k.sum(v)
	m.sum += k.digest
	lim.keys.Set(k, int64(k.due(v)))
}

// sealLimit lets go of versions that every key has passed.
func (m *Machine) sealLimit(lim *limit) {
	if m.limitsByID[lim.ID] != lim {
		return
	}
	first := lim.Versions[0].Number
	for first < lim.Now().Number && lim.passed[first] == 0 {
		first++
	}
	if first != lim.Versions[0].Number {
		m.setLineage(lim, lim.Trim(first))
	}
	lim.touched = false
	m.dueLimits.Set(lim, int64(lim.due()))
}

// setLineage changes what is known of a limit, and the state hash with it.
func (m *Machine) setLineage(lim *limit, next *lineage.Lineage) {
	m.sum -= lim.digest
	lim.Lineage, lim.names = next, nil
	lim.digest = sumLineage(next)
	m.sum += lim.digest
	m.touchLimit(lim)
}

// addLimit takes a new limit into the state.
func (m *Machine) addLimit(l *lineage.Lineage) *limit {
	lim := &limit{Lineage: l, passed: make(map[uint32]int)}
	m.limits[l.Name] = lim
	m.limitsByID[l.ID] = lim
	m.setLineage(lim, l)
	return lim
}

// reset keeps the lists for the next entry, unless they have become large.
func (t *touched) reset() {
	t.limits = emptied(t.limits)
	t.keys = emptied(t.keys)
	t.leases = emptied(t.leases)
	t.clients = emptied(t.clients)
}

func emptied[T any](list []*T) []*T {
	const keep = 8192
	if cap(list) > keep {
		return nil
	}
	clear(list)
	return list[:0]
}

// expired says whether a time has come.
func (m *Machine) expired(at bucket.Instant) bool { return m.clock.now >= at }
