package lineage

import (
	"fmt"
	"math"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// maxVersions bounds what Load takes. There are fewer: see fsm.
const maxVersions = 256

// Save is the lineage for a snapshot. It shares parts with it.
func (l *Lineage) Save() *logv1.SnapshotLimit {
	saved := &logv1.SnapshotLimit{
		Id: l.ID, Name: l.Name, Limit: l.Limit, Deleted: int64(l.Deleted), NextDimension: l.NextDimension,
	}
	for _, v := range l.Versions {
		saved.Versions = append(saved.Versions, v.save())
	}
	return saved
}

func (v *Version) save() *logv1.SnapshotVersion {
	saved := &logv1.SnapshotVersion{
		Number: v.Number, Since: int64(v.Since), Calendar: v.Calendar, Starts: v.Starts, Ends: v.Ends,
	}
	for i := range v.Dimensions {
		d := &v.Dimensions[i]
		saved.Dimensions = append(saved.Dimensions, &logv1.SnapshotDimension{
			Id: d.ID, Kind: d.Kind, Spec: d.Spec, Classes: d.Classes, Target: d.Target, Until: int64(d.Until),
			Pristine: SaveBucket(&d.Pristine),
		})
	}
	for i := range v.Overrides {
		o := &v.Overrides[i]
		one := &logv1.SnapshotOverride{Value: o.Value, Prefix: o.Prefix, Removed: o.Removed}
		for at := range o.Dimensions {
			d := &o.Dimensions[at]
			one.Dimensions = append(one.Dimensions, &logv1.SnapshotDimension{Spec: d.Spec, Pristine: SaveBucket(&d.Pristine)})
		}
		saved.Overrides = append(saved.Overrides, one)
	}
	return saved
}

// SaveBucket is a bucket for a snapshot.
func SaveBucket(b *bucket.Bucket) *logv1.SnapshotBucket {
	st := b.State()
	return &logv1.SnapshotBucket{Last: int64(st.Last), Free: st.Free, Levels: st.Levels, Debts: st.Debts}
}

// LoadBucket makes a bucket of what SaveBucket made, under the same shape. It
// refuses one that has seen the future.
func LoadBucket(s *bucket.Shape, saved *logv1.SnapshotBucket, now bucket.Instant) (bucket.Bucket, error) {
	if saved.GetLast() > int64(now) {
		return bucket.Bucket{}, fmt.Errorf("last %d: is after now, %d", saved.GetLast(), now)
	}
	return bucket.FromState(s, bucket.State{
		Last: bucket.Instant(saved.GetLast()), Free: saved.GetFree(), Levels: saved.GetLevels(), Debts: saved.GetDebts(),
	})
}

// Load makes a lineage of what Save made, and checks all of it: a snapshot may
// come from anywhere.
func Load(saved *logv1.SnapshotLimit, now bucket.Instant) (*Lineage, error) {
	l := &Lineage{
		ID: saved.GetId(), Name: saved.GetName(), Limit: saved.GetLimit(), NextDimension: saved.GetNextDimension(),
		Deleted: bucket.Instant(saved.GetDeleted()),
	}
	versions := saved.GetVersions()
	switch {
	case l.ID == 0:
		return nil, fmt.Errorf("limit %q: has number 0", clip(l.Name))
	case !IsName(l.Name):
		return nil, fmt.Errorf("limit %q: must be %s", clip(l.Name), namePattern)
	case len(versions) < 1 || len(versions) > maxVersions:
		return nil, fmt.Errorf("limit %q: %d versions, must be from 1 to %d", l.Name, len(versions), maxVersions)
	case l.Deleted < 0 || l.Deleted > now || l.Limit != nil && l.Deleted != 0:
		return nil, fmt.Errorf("limit %q: deleted at %d, now is %d", l.Name, l.Deleted, now)
	case int64(versions[0].GetNumber()) > math.MaxUint32-maxVersions:
		return nil, fmt.Errorf("limit %q: version %d is too high", l.Name, versions[0].GetNumber())
	}
	if l.Limit != nil {
		if l.Limit.GetName() != l.Name {
			return nil, fmt.Errorf("limit %q: is called %q", l.Name, clip(l.Limit.GetName()))
		}
		if _, err := Shapes(l.Limit); err != nil {
			return nil, fmt.Errorf("limit %q: %w", l.Name, err)
		}
	}
	for i, version := range versions {
		if want := versions[0].GetNumber() + uint32(i); version.GetNumber() != want {
			return nil, fmt.Errorf("limit %q: version %d where %d should be", l.Name, version.GetNumber(), want)
		}
		if err := l.load(version, now); err != nil {
			return nil, fmt.Errorf("limit %q: version %d: %w", l.Name, version.GetNumber(), err)
		}
	}
	if !l.counts() {
		return nil, fmt.Errorf("limit %q: its last version counts something else", l.Name)
	}
	return l, nil
}
