package lineage

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Here is what a limit says beside how much it hands out: when it applies, to whom,
// who waits, and how its provider is listened to.

// checkPace looks at how buckets reopen.
func checkPace(limit *logv1.Limit) error {
	if ramp := limit.GetRamp(); ramp < 0 || ramp > maxRamp {
		return bad("ramp", "%v: must be from 0s to %v", time.Duration(ramp), time.Duration(maxRamp))
	}
	a := limit.Adaptive
	switch {
	case a == nil:
		return nil
	case a.GetDecrease() < 1 || a.GetDecrease() >= bucket.Whole:
		return bad("adaptive.decrease", "%d: must be from 1 to %d", a.GetDecrease(), bucket.Whole-1)
	case a.GetStep() < 1 || a.GetStep() > bucket.Whole:
		return bad("adaptive.step", "%d: must be from 1 to %d", a.GetStep(), bucket.Whole)
	case a.GetInterval() < minInterval || a.GetInterval() > maxInterval:
		return bad("adaptive.interval", "%v: must be from %v to %v",
			time.Duration(a.GetInterval()), time.Duration(minInterval), time.Duration(maxInterval))
	case a.GetFloor() < 1 || a.GetFloor() > bucket.Whole:
		return bad("adaptive.floor", "%d: must be from 1 to %d", a.GetFloor(), bucket.Whole)
	}
	return nil
}

// checkAttributes looks at what brings a request to the limit, and makes its key.
func checkAttributes(limit *logv1.Limit) error {
	if n := len(limit.GetMatch()); n > maxAttributes {
		return bad("match", "%d attributes: must be at most %d", n, maxAttributes)
	}
	seen := make(map[string]bool)
	for i, m := range limit.GetMatch() {
		field := fmt.Sprintf("match[%d]", i)
		if err := checkAttribute(field+".attribute", m.GetAttribute(), seen); err != nil {
			return err
		}
		if m.GetValue() == "" && !m.GetPrefix() || !isText(m.GetValue(), maxKey) {
			return bad(field+".value", "%q: must be 1 to %d bytes of %s, or a prefix", clip(m.GetValue()), maxKey, textPattern)
		}
	}
	switch n := len(limit.GetPer()); {
	case n > maxAttributes:
		return bad("per", "%d attributes: must be at most %d", n, maxAttributes)
	case n > 0 && !limit.GetKeyed():
		return bad("per", "%d attributes: a limit without keys has none", n)
	}
	clear(seen)
	for i, attribute := range limit.GetPer() {
		if err := checkAttribute(fmt.Sprintf("per[%d]", i), attribute, seen); err != nil {
			return err
		}
	}
	return nil
}

func checkAttribute(field, name string, seen map[string]bool) error {
	switch {
	case !IsWord(name):
		return bad(field, "%q: must be %s", clip(name), wordPattern)
	case seen[name]:
		return bad(field, "%q: is there twice", name)
	}
	seen[name] = true
	return nil
}

// checkOverrides looks at the numbers that some keys have for themselves; their
// arithmetic is worked out with that of the limit.
func checkOverrides(limit *logv1.Limit) error {
	switch n := len(limit.GetOverrides()); {
	case n == 0:
		return nil
	case n > maxOverrides:
		return bad("overrides", "%d: must be at most %d", n, maxOverrides)
	case !limit.GetKeyed():
		return bad("overrides", "%d: a limit without keys has none", n)
	case limit.GetUnlimited():
		return bad("overrides", "%d: an unlimited limit has none", n)
	}
	seen := make(map[place]bool)
	for i, o := range limit.GetOverrides() {
		field := fmt.Sprintf("overrides[%d]", i)
		at := placeOf(o)
		switch {
		case o.GetValue() == "" || !isText(o.GetValue(), maxKey):
			return bad(field+".value", "%q: must be 1 to %d bytes of %s", clip(o.GetValue()), maxKey, textPattern)
		case seen[at]:
			return bad(field+".value", "%q: is there twice", clip(o.GetValue()))
		case len(o.GetDimensions()) != len(limit.GetDimensions()):
			return bad(field+".dimensions", "%d: must be the %d of the limit, in its order",
				len(o.GetDimensions()), len(limit.GetDimensions()))
		}
		seen[at] = true
		if err := checkOverride(limit, o, field+".dimensions"); err != nil {
			return err
		}
	}
	return nil
}

func checkOverride(limit *logv1.Limit, o *logv1.Override, path string) error {
	for i, d := range o.GetDimensions() {
		if want := limit.GetDimensions()[i].GetName(); d.GetName() != want {
			return bad(fmt.Sprintf("%s[%d].name", path, i), "%q: must be %q as in the limit", clip(d.GetName()), clip(want))
		}
	}
	switch limit.GetKind() {
	case logv1.Kind_KIND_CONCURRENCY:
		return checkSlots(o.GetDimensions(), path)
	case logv1.Kind_KIND_QUOTA:
		return checkAmounts(o.GetDimensions(), path)
	case logv1.Kind_KIND_RATE:
	}
	return nil
}

// checkQueue looks at what bounds those who wait.
func checkQueue(limit *logv1.Limit) error {
	q := limit.GetQueue()
	switch {
	case q.GetMax() < 0 || q.GetMax() > maxQueue:
		return bad("queue.max", "%d: must be from 0 to %d", q.GetMax(), maxQueue)
	case q.GetMaxTokens() < 0 || q.GetMaxTokens() > bucket.MaxTokens:
		return bad("queue.max_tokens", "%d: must be from 0 to %d", q.GetMaxTokens(), int64(bucket.MaxTokens))
	case q.GetMaxWait() < 0 || q.GetMaxWait() > maxWait:
		return bad("queue.max_wait", "%v: must be from 0s to %v", time.Duration(q.GetMaxWait()), time.Duration(maxWait))
	case len(q.GetWeights()) > maxWeights:
		return bad("queue.weights", "%d: must be at most %d", len(q.GetWeights()), maxWeights)
	}
	seen := make(map[string]bool)
	for i, w := range q.GetWeights() {
		field := fmt.Sprintf("queue.weights[%d]", i)
		switch {
		case w.GetClient() == "" || !isText(w.GetClient(), maxClient):
			return bad(field+".client", "%q: must be 1 to %d bytes of %s", clip(w.GetClient()), maxClient, textPattern)
		case seen[w.GetClient()]:
			return bad(field+".client", "%q: is there twice", clip(w.GetClient()))
		case w.GetWeight() < 1 || w.GetWeight() > maxWeight:
			return bad(field+".weight", "%d: must be from 1 to %d", w.GetWeight(), maxWeight)
		}
		seen[w.GetClient()] = true
	}
	return nil
}

func checkRest(limit *logv1.Limit) error {
	keys, source := limit.GetMaxKeysPerClient(), limit.GetSource()
	switch {
	case logv1.Mode_name[int32(limit.GetMode())] == "":
		return bad("mode", "%d: is no mode", limit.GetMode())
	case keys < 0 || keys > limit.GetMaxKeys():
		return bad("max_keys_per_client", "%d: must be from 0 to the %d of max_keys", keys, limit.GetMaxKeys())
	case limit.GetEscrow() < 0 || limit.GetEscrow() > maxEscrow:
		return bad("escrow", "%v: must be from 0s to %v", time.Duration(limit.GetEscrow()), time.Duration(maxEscrow))
	case !isText(source.GetUrl(), maxURL):
		return bad("source.url", "%q: must be at most %d bytes of %s", clip(source.GetUrl()), maxURL, textPattern)
	}
	if at := source.GetVerifiedAt(); at != "" {
		if _, err := time.Parse(time.DateOnly, at); err != nil {
			return bad("source.verified_at", "%q: must be a date, YYYY-MM-DD", clip(at))
		}
	}
	return nil
}
