package lineage

import (
	"fmt"
	"time"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// Bounds of what a limit has beside its dimensions.
const (
	maxZone = 64
	// maxKey is the longest key, and so the longest value that one is made of.
	maxKey    = 512
	maxClient = 256
	maxURL    = 2048
	// maxAttributes bounds what has to fit, and what a key is made of.
	maxAttributes = 16
	maxOverrides  = 1000
	maxWarnings   = 16
	maxQueue      = 1_000_000
	maxWeights    = 1000
	maxWeight     = 1000
	maxRamp       = int64(time.Hour)
	maxWait       = int64(time.Hour)
	minInterval   = int64(time.Millisecond)
	maxInterval   = int64(24 * time.Hour)
	maxEscrow     = int64(24 * time.Hour)
)

// slots is the one dimension of a limit of concurrency.
const slots = "slots"

// check looks at what a limit has beside its dimensions.
func check(limit *logv1.Limit) error {
	switch dimensions := len(limit.GetDimensions()); {
	case !IsName(limit.GetName()):
		return bad("name", "%q: must be %s", clip(limit.GetName()), namePattern)
	case limit.GetUnlimited() && dimensions > 0:
		return bad("dimensions", "%d: must be none where the limit is unlimited", dimensions)
	case !limit.GetUnlimited() && dimensions == 0:
		return bad("dimensions", "none: a limit counts something, or is unlimited")
	case dimensions > maxDimensions:
		return bad("dimensions", "%d: must be at most %d", dimensions, maxDimensions)
	case len(limit.GetClasses()) > bucket.MaxClasses:
		return bad("classes", "%d: must be at most %d", len(limit.GetClasses()), bucket.MaxClasses)
	case limit.GetLease() < minLease || limit.GetLease() > maxLease:
		return bad("lease", "%v: must be from %v to %v",
			time.Duration(limit.GetLease()), time.Duration(minLease), time.Duration(maxLease))
	case limit.GetMaxKeys() < 1:
		return bad("max_keys", "%d: must be at least 1", limit.GetMaxKeys())
	case limit.GetTarget() < 1 || limit.GetTarget() > bucket.Whole:
		return bad("target", "%d: must be from 1 to %d", limit.GetTarget(), bucket.Whole)
	case logv1.OnQuorumLoss_name[int32(limit.GetOnQuorumLoss())] == "":
		return bad("on_quorum_loss", "%d: is no mode", limit.GetOnQuorumLoss())
	case limit.GetFallbackShare() < 0 || limit.GetFallbackShare() > bucket.Whole:
		return bad("fallback_share", "%d: must be from 0 to %d", limit.GetFallbackShare(), bucket.Whole)
	case limit.GetShareReserve() < 0 || limit.GetShareReserve() > 0 &&
		(limit.GetOnQuorumLoss() != logv1.OnQuorumLoss_ON_QUORUM_LOSS_SHARE || limit.GetKind() != logv1.Kind_KIND_RATE ||
			limit.GetShareReserve() > bucket.Whole || HandedOut(limit) < 1):
		return bad("share_reserve", "%d: must be 0, or less than %d of a rate that is shared while nobody answers, and "+
			"leave a hundredth of a percent", limit.GetShareReserve(), bucket.Whole)
	}
	for _, part := range []func(*logv1.Limit) error{
		checkClasses, checkKind, checkPace, checkAttributes, checkOverrides, checkQueue, checkRest,
	} {
		if err := part(limit); err != nil {
			return err
		}
	}
	return nil
}

func checkClasses(limit *logv1.Limit) error {
	seen := make(map[string]bool)
	for i, class := range limit.GetClasses() {
		field := fmt.Sprintf("classes[%d]", i)
		switch {
		case !IsWord(class.GetName()):
			return bad(field+".name", "%q: must be %s", clip(class.GetName()), wordPattern)
		case seen[class.GetName()]:
			return bad(field+".name", "%q: is there twice", class.GetName())
		case class.GetBurst() < 0 || class.GetBurst() > bucket.Whole:
			return bad(field+".burst", "%d: must be from 0 to %d", class.GetBurst(), bucket.Whole)
		}
		seen[class.GetName()] = true
	}
	return nil
}

// checkKind makes sure that slots and quotas have nothing that only a rate has: it
// would be configured and do nothing.
func checkKind(limit *logv1.Limit) error {
	kind := limit.GetKind()
	switch {
	case logv1.Kind_name[int32(kind)] == "":
		return bad("kind", "%d: is no kind", kind)
	case kind != logv1.Kind_KIND_QUOTA && limit.Calendar != nil:
		return bad("calendar", "is for a quota: must be absent")
	case kind != logv1.Kind_KIND_QUOTA && len(limit.GetWarn()) > 0:
		return bad("warn", "%d parts: only a quota warns", len(limit.GetWarn()))
	case kind == logv1.Kind_KIND_RATE:
		return nil
	case limit.GetUnlimited():
		return bad("unlimited", "true: slots and quotas have a number")
	case limit.GetTarget() != bucket.Whole:
		return bad("target", "%d: must be %d where nothing is refilled", limit.GetTarget(), bucket.Whole)
	case len(limit.GetClasses()) > 0:
		return bad("classes", "%d: must be none where nothing is refilled", len(limit.GetClasses()))
	case limit.Adaptive != nil:
		return bad("adaptive", "is for a rate: must be absent")
	case kind == logv1.Kind_KIND_CONCURRENCY:
		return checkSlots(limit.GetDimensions(), "dimensions")
	}
	return checkQuota(limit)
}

// checkSlots says whether the dimensions, at a path, can be those of a limit of
// concurrency. Of slots that were given back as many as were taken come back,
// whatever a bucket would say.
func checkSlots(dimensions []*logv1.Dimension, path string) error {
	if len(dimensions) != 1 {
		return bad(path, "%d: slots are one dimension, %q", len(dimensions), slots)
	}
	d, field := dimensions[0], path+"[0]"
	switch {
	case d.GetName() != slots:
		return bad(field+".name", "%q: must be %q", clip(d.GetName()), slots)
	case d.GetAmount() != 0:
		return bad(field+".amount", "%d: must be 0 for slots", d.GetAmount())
	case d.GetMaxDebt() != 0:
		return bad(field+".max_debt", "%d: must be 0 for slots", d.GetMaxDebt())
	case d.GetMaxOpen() != 0:
		return bad(field+".max_open", "%d: must be 0 for slots: all of them come back", d.GetMaxOpen())
	}
	return nil
}

func checkQuota(limit *logv1.Limit) error {
	if err := checkCalendar(limit.Calendar); err != nil {
		return err
	}
	if n := len(limit.GetWarn()); n > maxWarnings {
		return bad("warn", "%d parts: must be at most %d", n, maxWarnings)
	}
	least := int64(1)
	for i, part := range limit.GetWarn() {
		if part < least || part >= bucket.Whole {
			return bad(fmt.Sprintf("warn[%d]", i), "%d: must be from %d to %d, and ascend", part, least, bucket.Whole-1)
		}
		least = part + 1
	}
	return checkAmounts(limit.GetDimensions(), "dimensions")
}

// checkAmounts says whether the dimensions, at a path, can be those of a quota.
func checkAmounts(dimensions []*logv1.Dimension, path string) error {
	for i, d := range dimensions {
		if d.GetAmount() != 0 {
			return bad(fmt.Sprintf("%s[%d].amount", path, i), "%d: must be 0 for a quota, of which the burst is the amount",
				d.GetAmount())
		}
	}
	return nil
}

func checkCalendar(c *logv1.Calendar) error {
	period := c.GetPeriod()
	switch {
	case c == nil:
		return bad("calendar", "none: a quota has one")
	case period == logv1.Calendar_PERIOD_UNSPECIFIED || logv1.Calendar_Period_name[int32(period)] == "":
		return bad("calendar.period", "%d: is no period", period)
	case !isZone(c.GetTimezone()):
		return bad("calendar.timezone", "%q: must be %s", clip(c.GetTimezone()), zonePattern)
	}
	return nil
}
