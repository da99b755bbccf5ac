package failopen

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// Account is what a Machine has admitted by itself under one key since it was
// made, or since the last StartOver. It never falls in between.
type Account struct {
	Limit, Key, Dimension, Class string
	// Tokens is 0 to bucket.MaxTokens and stays there.
	Tokens int64
	// Overflow is true for the keys of a limit and dimension, of any class, that
	// found no place any more (Config.KeysMax). Key and Class are empty then, and
	// the authority can't book it.
	Overflow bool
}

// target is one place that tokens are counted in.
type target struct{ limit, key, dimension, class string }

// account is one Account with what the authority has booked of it.
type account struct {
	target
	tokens, booked int64
	// queued: it is in accounts.pending.
	queued bool
	tally  *tally
	// paced is the bucket of the key, nil before it was needed.
	paced *paced
}

// tally is what was admitted of one dimension of one limit, by all keys and
// classes.
type tally struct {
	limit, dimension string
	tokens           int64
	// overflow is the part of tokens that is in no account.
	overflow int64
	// incident is the one that the next two are about.
	incident uint64
	spent    int64
	// keys is how many buckets were taken from, for the worst case.
	keys int64
	// lapsed: something was admitted by a share that the authority kept no longer.
	lapsed bool
	// spill is the bucket of the keys that found no place.
	spill *paced
}

// paced is one bucket of a share. The same key has one for all classes.
type paced struct {
	bucket bucket.Bucket
	shape  *bucket.Shape
	// incident is the one it was emptied for, spent the last one in which it was
	// taken from.
	incident, spent uint64
}

// accounts hold what was admitted. Their number is bounded. None is forgotten
// alone, because a report is cumulative and a bucket that comes back within an
// incident would be a gift.
type accounts struct {
	most    int
	byKey   map[target]*account
	tallies map[target]*tally
	paced   map[target]*paced
	// rest counts the limits that found no place.
	rest tally
	// pending are the accounts of which something is not booked, the longest
	// waiting first.
	pending []*account
}

func newAccounts(most int) accounts {
	return accounts{
		most: most, byKey: make(map[target]*account), tallies: make(map[target]*tally),
		paced: make(map[target]*paced),
	}
}

// tally is the one of a limit and dimension.
func (a *accounts) tally(limit, dimension string) *tally {
	at := target{limit: limit, dimension: dimension}
	if t := a.tallies[at]; t != nil {
		return t
	}
	if len(a.tallies) >= a.most {
		return &a.rest
	}
	t := &tally{limit: strings.Clone(limit), dimension: strings.Clone(dimension)}
	a.tallies[target{limit: t.limit, dimension: t.dimension}] = t
	return t
}

// open makes the account of a place, or nil where there is no room for it.
func (a *accounts) open(at target, t *tally) *account {
	if len(a.byKey) >= a.most {
		return nil
	}
	one := &account{tally: t}
	one.limit, one.key = strings.Clone(at.limit), strings.Clone(at.key)
	one.dimension, one.class = strings.Clone(at.dimension), strings.Clone(at.class)
	a.byKey[one.target] = one
	return one
}

// keep gives a bucket that is to stay a place under strings of its own: those of
// the caller may be parts of something large.
func (a *accounts) keep(c *Charge, p *paced) {
	delete(a.paced, target{limit: c.Limit, key: c.Key, dimension: c.Dimension})
	at := target{limit: strings.Clone(c.Limit), key: strings.Clone(c.Key), dimension: strings.Clone(c.Dimension)}
	a.paced[at] = p
}

// spend counts tokens that were admitted; one is nil for what has no account.
func (a *accounts) spend(one *account, t *tally, tokens int64) {
	t.tokens = min(add(t.tokens, tokens), bucket.MaxTokens)
	if one == nil {
		t.overflow = min(add(t.overflow, tokens), bucket.MaxTokens)
		return
	}
	one.tokens = min(add(one.tokens, tokens), bucket.MaxTokens)
	if !one.queued && one.tokens > one.booked {
		one.queued = true
		a.pending = append(a.pending, one)
	}
}

// unbooked is up to most accounts of which something is not booked.
func (a *accounts) unbooked(most int) []Account {
	var found []Account
	kept := a.pending[:0]
	seen := 0
	for _, one := range a.pending {
		if len(found) >= most {
			break
		}
		seen++
		if one.tokens <= one.booked {
			one.queued = false
			continue
		}
		kept = append(kept, one)
		found = append(found, one.account())
	}
	// What was seen and is still pending moves up to the rest, which stays where
	// it is: a long line is not copied for each report.
	rest := seen - len(kept)
	copy(a.pending[rest:seen], kept)
	a.pending = a.pending[rest:]
	if len(a.pending) == 0 {
		a.pending = nil
	}
	return found
}

// booked takes note of what the authority has booked.
func (a *accounts) booked(reported []Account) {
	for _, r := range reported {
		if one := a.byKey[target{r.Limit, r.Key, r.Dimension, r.Class}]; one != nil && !r.Overflow {
			one.booked = max(one.booked, r.Tokens)
		}
	}
}

func (a *account) account() Account {
	return Account{Limit: a.limit, Key: a.key, Dimension: a.dimension, Class: a.class, Tokens: a.tokens}
}

// clear forgets accounts and buckets; false, and nothing forgotten, where not
// all is booked.
func (a *accounts) clear() bool {
	for _, one := range a.pending {
		if one.tokens > one.booked {
			return false
		}
	}
	a.pending = nil
	a.byKey, a.paced = make(map[target]*account), make(map[target]*paced)
	return true
}

// all is every account, in order, those without a place after their limit's.
func (a *accounts) all() []Account {
	found := make([]Account, 0, len(a.byKey))
	for _, one := range a.byKey {
		found = append(found, one.account())
	}
	for _, t := range a.tallies {
		found = appendOverflow(found, t)
	}
	found = appendOverflow(found, &a.rest)
	slices.SortFunc(found, func(x, y Account) int {
		return cmp.Or(cmp.Compare(x.Limit, y.Limit), cmp.Compare(x.Dimension, y.Dimension),
			order(x.Overflow, y.Overflow), cmp.Compare(x.Key, y.Key), cmp.Compare(x.Class, y.Class))
	})
	return found
}

func appendOverflow(to []Account, t *tally) []Account {
	if t.overflow == 0 {
		return to
	}
	return append(to, Account{Limit: t.limit, Dimension: t.dimension, Tokens: t.overflow, Overflow: true})
}

// order puts false before true.
func order(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	default:
		return 1
	}
}
