package attempt

import "time"

const (
	// courseWindow is over which a client's failures are held against its successes: 5 to
	// 10 s, in two halves.
	courseWindow = 10 * time.Second
	// coursesMax is how many deployments of a client are followed.
	coursesMax = 4
	// fewMore is how many requests beyond what is usual are chance.
	fewMore = 5
	// creditSlots is into how many parts the gap is cut.
	creditSlots = 10
)

// course is how a client fares at one deployment. Where each body is another one, a
// retry can't be told from a first attempt by what it asks. But a client that mostly
// fails and sends something soon after each failure retries: each failure then stands
// for one suspected retry, no more. That is for want of something better: where two
// fifths of the failures come again in a way that is recognised, nothing else of that
// client is suspected. Those are a fifth of all that it sends by then. Nor is what it
// sends in any case: who fared well before, and sends no more than then, does not retry.
type course struct {
	deployment uint64
	used       time.Duration
	// began is when the newer half began.
	began       time.Duration
	now, before tally
	// usual is how many requests came in half a window while it fared well.
	usual uint32
	// credits are the failures of the last gap that no request has followed, by slot;
	// slot is the newest.
	credits [creditSlots]uint32
	slot    int64
}

type tally struct{ arrived, failed, succeeded, recognised uint32 }

// course is the one of a deployment; the longest unused makes room.
func (c *client) course(now time.Duration, deployment uint64) *course {
	oldest := &c.courses[0]
	for i := range c.courses {
		at := &c.courses[i]
		if at.used > 0 && at.deployment == deployment {
			at.used = now + 1
			return at
		}
		if at.used < oldest.used {
			oldest = at
		}
	}
	*oldest = course{deployment: deployment, used: now + 1, began: now}
	return oldest
}

func (k *course) rotate(now time.Duration) {
	switch age := now - k.began; {
	case age >= courseWindow:
		k.learn()
		k.began, k.now, k.before = now, tally{}, tally{}
	case age >= courseWindow/2:
		k.learn()
		k.began, k.now, k.before = k.began+courseWindow/2, tally{}, k.now
	}
}

// learn takes in what came in half a window, where hardly anything of it failed: more at
// once, less by and by.
func (k *course) learn() {
	if k.now.succeeded == 0 || k.now.failed*10 > k.now.arrived {
		return
	}
	if k.now.arrived >= k.usual {
		k.usual = k.now.arrived
	} else {
		k.usual -= (k.usual - k.now.arrived) / 4
	}
}

// arrives takes in a request, and says whether more come than do while the client fares
// well: a quarter more, and a few. Of who never did anything may be more.
func (k *course) arrives(now time.Duration) (more bool) {
	k.rotate(now)
	k.now.arrived++
	const half = int64(courseWindow / 2)
	usual := int64(k.usual) * (half + int64(max(0, now-k.began))) / half
	return k.usual == 0 || int64(k.now.arrived)+int64(k.before.arrived) > usual+usual/4+fewMore
}

// turn forgets the credits that are older than the gap.
func (k *course) turn(now, gap time.Duration) {
	slot := int64(now / (gap / creditSlots))
	for steps := min(slot-k.slot, creditSlots); steps > 0; steps-- {
		k.credits[(slot-steps+1)%creditSlots] = 0
	}
	k.slot = max(k.slot, slot)
}

// ended notes how a request ended.
func (k *course) ended(now, gap time.Duration, o Outcome) {
	k.rotate(now)
	switch o {
	case Throttled, Refused:
		k.turn(now, gap)
		k.now.failed++
		k.credits[k.slot%creditSlots]++
	case Succeeded:
		k.now.succeeded++
	case Failed, TimedOut, Canceled, Rejected:
	}
}

// follows takes the oldest credit, and says whether there was one.
func (k *course) follows(now, gap time.Duration) bool {
	k.turn(now, gap)
	for i := k.slot + 1; i <= k.slot+creditSlots; i++ {
		if credit := &k.credits[i%creditSlots]; *credit > 0 {
			*credit--
			return true
		}
	}
	return false
}

// failing says whether most requests of late were throttled and did not come again.
func (k *course) failing(now time.Duration, least, fractionBP uint32) bool {
	k.rotate(now)
	failed := uint64(k.now.failed) + uint64(k.before.failed)
	succeeded := uint64(k.now.succeeded) + uint64(k.before.succeeded)
	recognised := uint64(k.now.recognised) + uint64(k.before.recognised)
	return failed >= uint64(least) && failed > succeeded && recognised*5 < failed*2 &&
		failed*10_000 >= uint64(fractionBP)*(failed+succeeded)
}
