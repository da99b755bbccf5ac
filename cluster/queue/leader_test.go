package queue

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorlease/quorlease/fsm/bucket"
)

// leader serves a queue at one place from one bucket, as the node does: it
// proposes heads that are due, and the bucket decides.
type leader struct {
	q      *Queue
	shape  *bucket.Shape
	bucket bucket.Bucket
	terms  *Terms
	now    time.Duration
	// granted is who was granted, and when.
	granted map[*Waiter]time.Duration
	// noKeep is for the trap: nothing is kept for those who wait.
	noKeep bool
}

func newLeader(t rapid.TB, spec bucket.Spec, names ...string) *leader {
	t.Helper()
	shape, err := bucket.NewShape(spec)
	if err != nil {
		t.Fatal(err)
	}
	d := Dimension{Name: "tokens", Tokens: spec.Amount, Per: spec.Interval}
	for _, c := range spec.Classes {
		d.Parts = append(d.Parts, Part{Share: c.Share, SubBurst: c.SubBurst})
	}
	l := &leader{
		shape: shape, bucket: shape.Empty(0), granted: make(map[*Waiter]time.Duration),
		terms: &Terms{Max: 1000, Classes: names, Dimensions: []Dimension{d}},
	}
	l.q = New(Config{})
	l.q.Configure(0, map[string]*Terms{"gpt": l.terms})
	return l
}

// take asks the bucket, beside those who wait in other classes.
func (l *leader) take(class string, n int64) bool {
	keep := l.q.Keep(l.now, gpt, class, "tokens")
	if l.noKeep {
		keep = 0
	}
	l.bucket.Advance(l.shape, bucket.Instant(l.now))
	_, ok := l.bucket.TakeLeaving(l.shape, l.class(class), n, keep)
	return ok
}

func (l *leader) class(name string) int {
	if len(l.terms.Classes) == 0 {
		return 0
	}
	return l.terms.rank(name)
}

// ask is an acquire that may wait.
func (l *leader) ask(class, client string, n int64) (*Waiter, Status) {
	w := waiter(client, n)
	w.Class, w.Arrived = class, l.now
	if !l.q.Busy(gpt, class) && l.take(class, n) {
		l.granted[w] = l.now
		return w, Status{}
	}
	status, _ := l.q.Push(l.now, w, l.wait(class, n))
	return w, status
}

func (l *leader) wait(class string, n int64) time.Duration {
	wait, never := l.bucket.RetryAfter(l.shape, l.class(class), n)
	if never {
		return Never
	}
	return max(ms, wait)
}

// until lets time pass, a millisecond at a time, and calls each.
func (l *leader) until(end time.Duration, each func()) {
	for l.now < end {
		l.now += ms
		if each != nil {
			each()
		}
		for range 100 {
			heads := l.q.Next(l.now)
			if len(heads) == 0 {
				break
			}
			for _, head := range heads {
				l.serve(head)
			}
		}
	}
}

func (l *leader) serve(head *Waiter) {
	n := head.Costs[0].Tokens
	if l.take(head.Class, n) {
		l.granted[head] = l.now
		l.q.Granted(l.now, head)
		return
	}
	class := l.class(head.Class)
	if missing := l.shape.SubBurst(class) - l.bucket.ClassLevel(l.shape, class); len(l.terms.Classes) > 0 {
		if fills, ok := l.q.FillsIn(head, "tokens", missing); ok {
			l.q.OwnFull(head, "tokens", l.now+fills)
		}
	}
	l.q.Denied(l.now, head, l.wait(head.Class, n))
}

// halves is the bucket of T48: two classes with 30 % each, and 3 of 10 tokens.
var halves = bucket.Spec{
	Amount: 10, Interval: time.Second, Target: bucket.Whole, Burst: 10, MaxDebt: 10,
	Classes: []bucket.ClassSpec{{Share: 3000, SubBurst: 3}, {Share: 3000, SubBurst: 3}},
}

func TestT48OverflowIsKeptForTheHead(t *testing.T) {
	t.Parallel()
	run := func(noKeep, liveWaits bool, end time.Duration) (*leader, *Waiter) {
		l := newLeader(t, halves, "live", "batch")
		l.noKeep = noKeep
		head, _ := l.ask("batch", "backfill", 4)
		l.until(end, func() {
			// Live borrows every free token that it may have.
			for !l.q.Busy(gpt, "live") && l.take("live", 1) {
				continue
			}
			if liveWaits && !l.q.Busy(gpt, "live") {
				l.ask("live", "chat", 5)
			}
		})
		return l, head
	}
	for name, liveWaits := range map[string]bool{
		"T48_live_passes": false, "T48_live_waits": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Its own part fills in 1 s, one more token overflows in another third.
			l, head := run(false, liveWaits, 2*time.Second)
			if at, ok := l.granted[head]; !ok || at < 1300*ms || at > 1500*ms {
				t.Errorf("granted %t at %v", ok, at)
			}
		})
	}
	t.Run("T48_without_it_the_head_waits_for_ever", func(t *testing.T) {
		t.Parallel()
		if l, head := run(true, false, time.Minute); l.granted[head] != 0 {
			t.Errorf("granted at %v", l.granted[head])
		}
	})
}

func TestG5WaitersOfAnotherClass(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLeader(t, halves, "live", "batch")
		inside, other := "live", "batch"
		if rapid.Bool().Draw(t, "batch is the one inside") {
			inside, other = other, inside
		}
		l.bucket = l.shape.Full(0)
		// One token each third of a second and a ms is inside 3 a second.
		due := time.Duration(0)
		l.until(time.Duration(rapid.IntRange(1, 8).Draw(t, "seconds"))*time.Second, func() {
			if rapid.IntRange(0, 5).Draw(t, "other") == 0 {
				l.ask(other, "x", rapid.Int64Range(1, 7).Draw(t, "tokens"))
			}
			if l.now < due {
				return
			}
			due = l.now + 334*ms
			if l.q.Busy(gpt, inside) || !l.take(inside, 1) {
				t.Fatalf("at %v a class inside its guarantee is denied: %+v", l.now, l.bucket)
			}
		})
	})
}

func TestA4BurstDrains(t *testing.T) {
	t.Parallel()
	l := newLeader(t, bucket.Spec{Amount: 2, Interval: time.Second, Target: bucket.Whole, Burst: 10})
	l.bucket = l.shape.Full(0)
	l.until(time.Second, nil)
	for range 25 {
		l.ask("", "backfill", 1)
	}
	if got := l.q.Len(); len(l.granted) != 10 || got != 15 {
		t.Fatalf("%d admitted, %d held, want 10 and 15", len(l.granted), got)
	}
	for second, want := range []int{13, 11, 9, 7, 5, 3, 1, 0} {
		l.until(time.Duration(second+2)*time.Second, nil)
		if got := l.q.Len(); got != want {
			t.Errorf("after second %d: %d held, want %d", second+2, got, want)
		}
	}
}

func TestETA(t *testing.T) {
	t.Parallel()
	// The wait that one is told when it comes is what it waits, within a tenth.
	for name, step := range map[string]func(l *leader){
		"S3-39": func(*leader) {},
		"S3-39_beside_live_traffic": func(l *leader) {
			// Six tenths of what comes.
			if l.now%(166*ms) == 0 {
				l.take("live", 1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLeader(t, halves, "live", "batch")
			for range 100 {
				l.ask("batch", "backfill", 2)
			}
			// A part of the queue has gone by: the lane knows its pace.
			l.until(15*time.Second, func() { step(l) })
			w, status := l.ask("batch", "backfill", 2)
			came := l.now
			l.until(5*time.Minute, func() { step(l) })
			waited := l.granted[w] - came
			if off := (status.ETA - waited).Abs(); off > waited/10 {
				t.Errorf("told %v, waited %v", status.ETA, waited)
			}
		})
	}
}

// S3-44: who waits costs nothing until it is due: no look, no proposal.
func TestWaitersAreNotPolled(t *testing.T) {
	t.Parallel()
	t.Run("S3-44", func(t *testing.T) {
		t.Parallel()
		l := newLeader(t, bucket.Spec{Amount: 1, Interval: time.Second, Target: bucket.Whole, Burst: 1})
		for range 50 {
			l.ask("", "backfill", 1)
		}
		looks := 0
		for l.now < 50*time.Second {
			at, ok := l.q.NextDue()
			if !ok {
				break
			}
			l.now = at
			for _, head := range l.q.Next(l.now) {
				looks++
				l.serve(head)
			}
		}
		// Each is looked at when it becomes the head, and when it is due.
		if len(l.granted) != 50 || looks > 100 {
			t.Errorf("%d granted with %d looks", len(l.granted), looks)
		}
	})
}
