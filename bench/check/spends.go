package check

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
)

// electionMost is what clients that share a limit may trail by beside all else.
const electionMost = 3 * time.Second

// Spent is what a log says about the spending of one dimension of a limit (G2), if
// everybody who was granted something spent it at the worst moment.
type Spent struct {
	Limit, Dimension string
	// Slack is the limit's, worked out from its numbers. Where nodes held nothing of it
	// the life of escrow is no part of it.
	Slack time.Duration
	// Excess is that of the key with the largest.
	Excess Excess
	Key    string
}

// OK: the slack was enough.
func (s *Spent) OK() bool { return s.Excess.Time <= s.Slack }

// Said is that in words.
func (s *Spent) Said() string {
	text := fmt.Sprintf("each token of %s %s spent at the worst moment: above burst + rate·d at most %v",
		s.Limit, s.Dimension, s.Excess)
	if s.Excess.Tokens > 0 && s.Key != "" {
		text += " (" + s.Key + ")"
	}
	return text + fmt.Sprintf("; the slack is %v", s.Slack.Round(time.Millisecond))
}

// spends is what could be spent, by bucket, in authority time.
type spends struct {
	terms map[Bucket]*spendTerms
	held  map[Bucket][]Held
	// leases that were not settled, by id.
	leases map[string][]spot
}

// spendTerms are the largest numbers that a dimension of a limit had.
type spendTerms struct {
	spec           Spec
	lease, escrow  time.Duration
	share, escrows bool
	open           int64
}

// spot is a place in the list of a bucket.
type spot struct {
	bucket Bucket
	at     int
}

func newSpends() *spends {
	return &spends{terms: map[Bucket]*spendTerms{}, held: map[Bucket][]Held{}, leases: map[string][]spot{}}
}

// limit takes over a limit's numbers. What was granted under others may be spent still,
// so the larger of both count.
func (s *spends) limit(limit *logv1.Limit, d *logv1.Dimension, spec Spec) {
	name := Bucket{Limit: limit.GetName(), Dimension: d.GetName()}
	t := s.terms[name]
	if t == nil {
		t = &spendTerms{spec: spec}
		s.terms[name] = t
	}
	if spec.faster(t.spec) {
		spec.Burst = max(spec.Burst, t.spec.Burst)
		t.spec = spec
	}
	t.spec.Burst = max(t.spec.Burst, spec.Burst)
	t.lease = max(t.lease, time.Duration(limit.GetLease()))
	t.escrow = max(t.escrow, time.Duration(limit.GetEscrow()))
	t.open = max(t.open, d.GetMaxOpen())
	t.share = t.share || limit.GetOnQuorumLoss() == logv1.OnQuorumLoss_ON_QUORUM_LOSS_SHARE
}

// faster says whether a rate is above another one.
func (s Spec) faster(other Spec) bool {
	cross := func(a, b Spec) *big.Int {
		n := new(big.Int).Mul(big.NewInt(a.Amount), big.NewInt(a.TargetBP))
		return n.Mul(n, big.NewInt(b.Interval))
	}
	return cross(s, other).Cmp(cross(other, s)) > 0
}

// can notes that tokens can be spent from now on for as long as life.
func (s *spends) can(bucket Bucket, tokens, now int64, life time.Duration, apart bool) spot {
	t := s.terms[Bucket{Limit: bucket.Limit, Dimension: bucket.Dimension}]
	if t == nil || tokens <= 0 {
		return spot{at: -1}
	}
	until := now + int64(life)
	list := s.held[bucket]
	if n := len(list) - 1; n >= 0 && !apart && list[n].From == now && list[n].Until == until {
		list[n].Tokens += tokens
		return spot{bucket, n}
	}
	s.held[bucket] = append(list, Held{From: now, Until: until, Tokens: tokens})
	return spot{bucket, len(list)}
}

// lent notes that a node can grant tokens for as long as life, each for the life of a
// lease.
func (s *spends) lent(bucket Bucket, tokens, now int64, life time.Duration) spot {
	t := s.terms[Bucket{Limit: bucket.Limit, Dimension: bucket.Dimension}]
	if t == nil {
		return spot{at: -1}
	}
	t.escrows = true
	return s.can(bucket, tokens, now, life+t.lease, true)
}

// less notes that tokens were not spent, or are spent as something else.
func (s *spends) less(at spot, tokens int64) {
	if at.at >= 0 {
		one := &s.held[at.bucket][at.at]
		one.Tokens -= min(one.Tokens, tokens)
	}
}

// leased remembers what a lease can be spent on.
func (s *spends) leased(id []byte, at spot) {
	if len(id) > 0 && at.at >= 0 {
		name := hex.EncodeToString(id)
		s.leases[name] = append(s.leases[name], at)
	}
}

// settled ends a lease: it is not spent any more, and what went back never was.
func (s *spends) settled(id []byte, now int64, settlements []*logv1.Settlement) {
	name := hex.EncodeToString(id)
	for _, at := range s.leases[name] {
		one := &s.held[at.bucket][at.at]
		one.Until = max(one.From, min(one.Until, now))
		for _, part := range settlements {
			if (Bucket{part.GetLimit(), part.GetKey(), part.GetDimension()}) == at.bucket {
				one.Tokens -= min(one.Tokens, part.GetRefunded())
			}
		}
	}
	delete(s.leases, name)
}

// slack is that of G2.
func (t *spendTerms) slack() time.Duration {
	slack := t.lease
	if t.escrows {
		slack += t.escrow
	}
	if t.share {
		slack += electionMost
	}
	if t.open == 0 {
		return slack
	}
	open := new(big.Int).Mul(big.NewInt(t.open), big.NewInt(t.spec.Interval))
	perInterval := new(big.Int).Mul(big.NewInt(t.spec.Amount), big.NewInt(t.spec.TargetBP))
	if perInterval.Sign() == 0 {
		return longest
	}
	wait := roundUp(open.Mul(open, big.NewInt(whole)), perInterval)
	return slack + time.Duration(min(wait, math.MaxInt64-int64(slack)))
}

// verdicts go through every bucket.
func (s *spends) verdicts() (list []Spent) {
	found := map[Bucket]*Spent{}
	for bucket, held := range s.held {
		name := Bucket{Limit: bucket.Limit, Dimension: bucket.Dimension}
		t := s.terms[name]
		one := found[name]
		if one == nil {
			one = &Spent{Limit: name.Limit, Dimension: name.Dimension, Slack: t.slack()}
			found[name] = one
		}
		// Ties are broken by name, so that the same log always says the same.
		e := Spendable(t.spec, slices.Clone(held))
		if e.Tokens > one.Excess.Tokens || e.Tokens == one.Excess.Tokens && bucket.Key < one.Key {
			one.Excess, one.Key = e, bucket.Key
		}
	}
	for _, one := range found {
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b Spent) int {
		if a.Limit != b.Limit {
			return compareStrings(a.Limit, b.Limit)
		}
		return compareStrings(a.Dimension, b.Dimension)
	})
	return list
}

func compareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
