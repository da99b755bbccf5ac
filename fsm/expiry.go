package fsm

import (
	"github.com/quorlease/quorlease/fsm/state"
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
	for range sweepMost {
		l, at := m.state.FirstToSettle()
		if at > m.state.Now {
			break
		}
		m.leases.Expire(l)
	}
	m.leases.EndSessions(sweepMost)
	for range sweepMost {
		l, at := m.state.FirstToForget()
		if at > m.state.Now {
			break
		}
		m.state.ForgetLease(l)
	}
	m.escrow.Sweep(sweepMost)
	m.state.ForgetControls(sweepMost)
	m.sweepLimits()
	m.state.ForgetSilent(sweepMost)
	m.state.ForgetReports(sweepMost)
	m.state.Shares.Forget(m.state.Now, sweepMost)
}

func (m *Machine) sweepLimits() {
	for range sweepMost {
		lim, at := m.state.FirstDueLimit()
		if at > m.state.Now {
			return
		}
		if k, due := lim.FirstDue(); due <= m.state.Now {
			m.sweepKey(lim, k)
		} else if lim.Live() || lim.Keys() > 0 {
			m.voids(lim, m.state.SetLineage(lim, lim.Forget(m.state.Now)))
		} else {
			// It was deleted, and nothing is left to remember.
			m.state.ForgetLimit(lim)
			continue
		}
		m.state.RequeueLimit(lim)
	}
}

// sweepKey drops a key that has become as one never seen. One that was full
// under an old version of its limit goes on to the version now.
func (m *Machine) sweepKey(lim *state.Limit, k *state.Key) {
	k = m.state.ChangeKey(lim, k)
	v := lim.Now().For(k.Name)
	if k.Pristine(v, m.state.Now) {
		m.state.DropKey(lim, k)
		return
	}
	for i := range v.Dimensions {
		k.Held(i).Bucket.Advance(v.Dimensions[i].Shape, m.state.Now)
	}
	m.state.SealKey(k)
}
