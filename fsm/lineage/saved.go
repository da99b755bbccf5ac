package lineage

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

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
		version := &logv1.SnapshotVersion{Number: v.Number, Since: int64(v.Since)}
		for i := range v.Dimensions {
			d := &v.Dimensions[i]
			version.Dimensions = append(version.Dimensions, &logv1.SnapshotDimension{
				Id: d.ID, Spec: d.Spec, Classes: d.Classes, Target: d.Target, Until: int64(d.Until),
				Pristine: SaveBucket(&d.Pristine),
			})
		}
		saved.Versions = append(saved.Versions, version)
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
		return nil, fmt.Errorf("limit %q: its last version counts other dimensions", l.Name)
	}
	return l, nil
}

func (l *Lineage) load(saved *logv1.SnapshotVersion, now bucket.Instant) error {
	var before *Version
	if len(l.Versions) > 0 {
		before = l.Now()
	}
	since := bucket.Instant(saved.GetSince())
	switch {
	case since < 0 || since > now || before != nil && since < before.Since:
		return fmt.Errorf("since %d: must ascend, and be at most %d", since, now)
	case len(saved.GetDimensions()) > maxRemembered:
		return fmt.Errorf("%d dimensions: must be at most %d", len(saved.GetDimensions()), maxRemembered)
	}
	v := &Version{}
	for _, one := range saved.GetDimensions() {
		d := Dimension{
			ID: one.GetId(), Spec: one.GetSpec(), Classes: one.GetClasses(), Target: one.GetTarget(),
			Until: bucket.Instant(one.GetUntil()),
		}
		if d.ID == 0 || d.ID >= l.NextDimension || v.FindID(d.ID) >= 0 || v.Find(d.Spec.GetName()) >= 0 || d.Until < 0 {
			return fmt.Errorf("dimension %d, %q: is wrong or there twice", d.ID, clip(d.Spec.GetName()))
		}
		// The checks of a limit are those of its dimensions.
		shapes, err := Shapes(&logv1.Limit{
			Name: l.Name, Dimensions: []*logv1.Dimension{d.Spec}, Classes: d.Classes, Target: d.Target,
			Lease: minLease, MaxKeys: 1,
		})
		if err != nil {
			return fmt.Errorf("dimension %d: %w", d.ID, err)
		}
		d.Shape = shapes[0]
		if before != nil {
			if at := before.FindID(d.ID); at >= 0 && d.alike(&before.Dimensions[at]) {
				d.Shape = before.Dimensions[at].Shape
			}
		}
		if d.Pristine, err = LoadBucket(d.Shape, one.GetPristine(), now); err != nil {
			return fmt.Errorf("dimension %d: pristine: %w", d.ID, err)
		}
		v.Dimensions = append(v.Dimensions, d)
	}
	l.Versions = append(l.Versions, newVersion(saved.GetNumber(), since, v.Dimensions))
	return nil
}

// counts says whether the version now counts what is configured.
func (l *Lineage) counts() bool {
	live := 0
	for i := range l.Now().Dimensions {
		d := &l.Now().Dimensions[i]
		if !d.Live() {
			continue
		}
		if live >= len(l.Limit.GetDimensions()) || !proto.Equal(d.Spec, l.Limit.GetDimensions()[live]) {
			return false
		}
		live++
	}
	return live == len(l.Limit.GetDimensions())
}
