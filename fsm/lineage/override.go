package lineage

import logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"

// place is what an override is for: one key, or the keys with a prefix.
type place struct {
	value  string
	prefix bool
}

func placeOf(o *logv1.Override) place { return place{value: o.GetValue(), prefix: o.GetPrefix()} }
