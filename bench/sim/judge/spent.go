package judge

import (
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// spent checks G2, in real time: in every interval clients spend at most the
// burst and what the rate gives in the interval and the slack. Of a limit in
// share mode also A20: what clients admit by themselves is at most their share of
// burst and rate.
type spent struct {
	judge   *Judge
	buckets map[place]*spending
	// local is what each client admitted by itself, by its name; "" is the fleet.
	local map[string]*spending
	// incidents is what each client that decides by itself admitted since it began.
	incidents map[string]*spending
}

// spending is one sum with its bound, as in debit: rate is per second and
// millionth, extra what shares add to it now.
type spending struct {
	since, begin time.Duration
	rate, extra  int64
	room         int64
	net, gave    int64
	least        int64
	begun        bool
	// fixed: only intervals from its beginning count.
	fixed bool
}

func (s *spending) advance(now time.Duration) {
	d := int64(now - s.since)
	millionths := s.rate + s.extra
	s.gave += d*millionths/1_000_000 + d*millionths/1_000_000*2*DriftPPM/1_000_000 + 1
	s.since = now
}

func (s *spending) spend(n int64) (over int64) {
	if begin := s.net - s.gave + s.room; !s.begun || begin < s.least && !s.fixed {
		s.least, s.begun = begin, true
	}
	s.net += n * units
	return s.net - s.gave - s.least
}

// shareSlack is how long a client may take to find that nobody answers.
const shareSlack = 3 * time.Second

// Watch bounds what may be spent of a key of a limit; the key is empty where it has
// none.
func (j *Judge) Watch(limit *logv1.Limit, key string) {
	for _, d := range limit.GetDimensions() {
		slack := limit.GetEscrow() + limit.GetLease() + units*d.GetMaxOpen()/d.GetAmount() + 1
		if limit.GetOnQuorumLoss() == logv1.OnQuorumLoss_ON_QUORUM_LOSS_SHARE {
			slack += int64(shareSlack)
		}
		j.spent.buckets[place{limit.GetName(), key, d.GetName()}] = &spending{
			rate: d.GetAmount() * 1_000_000, room: d.GetBurst()*units + d.GetAmount()*slack,
		}
	}
}

// Spend notes that a client used tokens at a moment of real time.
func (j *Judge) Spend(now time.Duration, who string, c *logv1.Charge, n int64) {
	p := place{c.GetLimit(), c.GetKey(), c.GetDimension()}
	s := j.spent.buckets[p]
	if s == nil {
		return
	}
	s.advance(now)
	if over := s.spend(n); over > 0 {
		j.Complain("G2", "%s spent %d of %v: %d billionths of a token more than burst, rate and slack allow",
			who, n, p, over)
	}
}

// SpendLease notes that a holder used tokens of a lease, which must not have
// ended: the slack of G2 has room for one life of a lease and no more.
func (j *Judge) SpendLease(now time.Duration, who string, c *logv1.Charge, n int64, grant Grant) {
	if reached := int64(j.clock.now); reached >= grant.Until {
		j.Complain("G2", "%s spent %d of a lease of %s that ended at %v: authority time is %v",
			who, n, c.GetLimit(), time.Duration(grant.Until), time.Duration(reached))
	}
	j.Spend(now, who, c, n)
}

// Grant is how long a lease may be spent, in authority time.
type Grant struct{ Until int64 }

// Fallback bounds what each of some clients admits by itself of a limit without
// keys: a share, in millionths, of its rate and burst.
func (j *Judge) Fallback(limit *logv1.Limit, who []string, share int64) {
	d := limit.GetDimensions()[0]
	one := func(part int64) *spending {
		return &spending{rate: d.GetAmount() * part, room: d.GetBurst() * units / 1_000_000 * part}
	}
	for _, name := range who {
		j.spent.local[name] = one(share)
	}
	all := share * int64(len(who))
	j.spent.local[""] = one(all)
	// If only some are cut off, they use their shares beside what is handed out.
	j.spent.buckets[place{limit.GetName(), "", d.GetName()}].room += d.GetBurst() * units / 1_000_000 * all
}

// SpendLocal notes that a client admitted something by itself (A20).
func (j *Judge) SpendLocal(now time.Duration, who string, c *logv1.Charge, n int64) {
	for _, name := range []string{who, ""} {
		s := j.spent.local[name]
		s.advance(now)
		if over := s.spend(n); over > 0 {
			j.Complain("A20", "with the %d that %s admitted itself %q is %d billionths of a token over its share",
				n, who, name, over)
		}
	}
	if s := j.spent.incidents[who]; s != nil {
		s.advance(now)
		if over := s.spend(n); over > 0 {
			j.Complain("A20", "%s began an incident %v ago and is %d billionths of a token over what its share of "+
				"the rate gave since", who, now-s.begin, over)
		}
	}
	j.Spend(now, who, c, n)
	j.reports.admitted(report{who, place{c.GetLimit(), c.GetKey(), c.GetDimension()}}, n)
}

// Away notes that a client paces itself at its share, in millionths, from now on,
// or no longer where that is 0. It begins with nothing: what it was granted
// before may still be spent.
func (j *Judge) Away(now time.Duration, who string, limit *logv1.Limit, share int64) {
	d := limit.GetDimensions()[0]
	s := j.spent.buckets[place{limit.GetName(), "", d.GetName()}]
	s.advance(now)
	if before := j.spent.incidents[who]; before != nil {
		s.extra -= before.rate
		delete(j.spent.incidents, who)
	}
	if share > 0 {
		j.spent.incidents[who] = &spending{since: now, begin: now, begun: true, fixed: true, rate: d.GetAmount() * share}
		s.extra += d.GetAmount() * share
	}
}
