package state

import (
	"fmt"
	"slices"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
	"github.com/quorlease/quorlease/fsm/check"
	"github.com/quorlease/quorlease/fsm/digest"
	"github.com/quorlease/quorlease/fsm/lineage"
)

// rare is what few keys have.
type rare struct {
	// maker is who brought the key into being, empty where that is not counted.
	maker string
	// warned are the parts of quotas of which was warned, each with the number of its
	// dimension before it. In a new window the dimensions have other numbers.
	warned []uint64
	// withheld is what outages withheld of each bucket, see Withheld. nil: nothing.
	withheld []int64
}

func (r *rare) clone() *rare {
	if r == nil {
		return nil
	}
	return &rare{maker: r.maker, warned: slices.Clone(r.warned), withheld: slices.Clone(r.withheld)}
}

func (r *rare) digest(sum *digest.Sum) {
	if r == nil {
		return
	}
	sum.Text(r.maker)
	for _, one := range r.warned {
		sum.Word(one)
	}
	if r.withheld == nil {
		return
	}
	sum.Word(tagWithheld)
	for _, one := range r.withheld {
		sum.Int(one)
	}
}

// loadRare takes back what a snapshot has of it, and nil for nothing.
func loadRare(saved *logv1.SnapshotKey) (*rare, error) {
	r := &rare{maker: saved.GetClient(), warned: saved.GetWarned(), withheld: saved.GetWithheld()}
	if err := check.Text("client", r.maker, 0, check.MaxText); err != nil {
		return nil, err
	}
	if n := len(r.warned); n > maxWarned || !slices.IsSorted(r.warned) {
		return nil, fmt.Errorf("%d warnings, at most %d in order", n, maxWarned)
	}
	if n := len(r.withheld); n > 0 && (n != len(saved.GetBuckets()) || slices.Min(r.withheld) < 0) {
		return nil, fmt.Errorf("%v is withheld of %d buckets", r.withheld, len(saved.GetBuckets()))
	}
	return r.tidied(), nil
}

// tidied is nil where there is nothing.
func (r *rare) tidied() *rare {
	if !slices.ContainsFunc(r.withheld, func(one int64) bool { return one != 0 }) {
		r.withheld = nil
	}
	if r.maker == "" && len(r.warned) == 0 && r.withheld == nil {
		return nil
	}
	return r
}

// maxWarned bounds what Restore takes: the sixteen parts at which a limit warns, of each
// dimension that it has or remembers.
const maxWarned = 1024

// tagWithheld is above any warning: never change it.
const tagWithheld = 1 << 63

// maxPart is above any part, in hundredths of a percent.
const maxPart = 1 << 16

// Warned says whether one of the parts of a quota at which its limit warns was warned of,
// and from then on it was. Parts at which it does not warn any more are forgotten. The
// key was touched; v is what counts for it now.
func (k *Key) Warned(v *lineage.Variant, dimension uint32, part int64, parts []int64) bool {
	one := uint64(dimension)*maxPart + uint64(part)
	if k.rare == nil {
		k.rare = &rare{}
	}
	at, found := slices.BinarySearch(k.rare.warned, one)
	if found {
		return true
	}
	k.rare.warned = slices.Insert(k.rare.warned, at, one)
	k.rare.warned = slices.DeleteFunc(k.rare.warned, func(one uint64) bool {
		return v.FindID(uint32(one/maxPart)) < 0 || !slices.Contains(parts, int64(one%maxPart))
	})
	return false
}

// AddKeyFor is AddKey for somebody whose keys are counted where the limit asks for it.
func (s *State) AddKeyFor(lim *Limit, name, maker string) *Key {
	k := s.newKey(lim, name)
	if lim.Limit.GetMaxKeysPerClient() > 0 && maker != "" {
		k.rare = &rare{maker: maker}
	}
	return s.insertKey(lim, k)
}

// TooMany says that somebody can't bring so many more keys of the limit into being.
func (l *Limit) TooMany(maker string, more int) bool {
	most := l.Limit.GetMaxKeysPerClient()
	return most > 0 && maker != "" && int64(len(l.made[maker])+more) > most
}

// searchMost bounds the keys that are looked at for a hint: a flood of denials must not
// hold everybody up.
const searchMost = 128

// FirstDueOf is when the first key that somebody brought into being may be dropped;
// lineage.Never where none will be, or where there are too many to look.
func (s *State) FirstDueOf(lim *Limit, maker string) bucket.Instant {
	made, first := lim.made[maker], lineage.Never
	if len(made) > searchMost {
		return lineage.Never
	}
	// The order does not matter: the earliest counts.
	for name := range made {
		k := s.FindKey(lim.ID, name)
		at := bucket.Instant(lim.keys.At(k))
		if k.touched {
			// Its place is that of before the entry.
			at = k.due(lim.At(k.Passed))
		}
		first = min(first, lim.Due(at))
	}
	return first
}

// count counts a key with who brought it into being, or no longer.
func (l *Limit) count(k *Key, there bool) {
	if k.rare == nil || k.rare.maker == "" {
		return
	}
	maker := k.rare.maker
	if !there {
		delete(l.made[maker], k.Name)
		if len(l.made[maker]) == 0 {
			delete(l.made, maker)
		}
		return
	}
	if l.made == nil {
		l.made = make(map[string]map[string]struct{})
	}
	if l.made[maker] == nil {
		l.made[maker] = make(map[string]struct{})
	}
	l.made[maker][k.Name] = struct{}{}
}
