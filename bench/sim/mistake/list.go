package mistake

import (
	"slices"

	"github.com/quorlease/quorlease/tools/overlay"
)

// in is an edit of a file of fsm/bucket.
func in(file, text, with string) overlay.Edit {
	return overlay.Edit{File: "fsm/bucket/" + file, Text: text, With: with}
}

// waits is an edit of a file of cluster/waiting.
func waits(file, text, with string) overlay.Edit {
	return overlay.Edit{File: "cluster/waiting/" + file, Text: text, With: with}
}

// All are the mistakes.
func All() []Mistake {
	return slices.Concat(changing(), owing(), guaranteeing(), waitingRoom(), slots(), pauses(), counting(), timing(),
		lending(), carrying(), members())
}

// changing is about limits that change.
func changing() []Mistake {
	return []Mistake{
		// A bucket passes only the last change of its limit.
		{"T13", []string{"G1"}, []overlay.Edit{{
			File: "fsm/lineage/carry.go",
			Text: `	for i := passed - l.Versions[0].Number + 1; int(i) < len(l.Versions); i++ {
`, With: `	i := passed - l.Versions[0].Number + 1
	if mistake("T13") {
		i = max(i, uint32(len(l.Versions)-1))
	}
	for ; int(i) < len(l.Versions); i++ {
`,
		}}},
		// A bucket that was dropped is full under the numbers of now.
		{"T14", []string{"G1"}, []overlay.Edit{{
			File: "fsm/lineage/dimension.go",
			Text: `	d.Pristine = old.Untouched(now)
	d.take(old, &d.Pristine)
`, With: `	d.Pristine = old.Untouched(now)
	d.take(old, &d.Pristine)
	if mistake("T14") {
		d.Pristine = d.Shape.Full(now)
	}
`,
		}}},
	}
}

// owing is about debts.
func owing() []Mistake {
	return []Mistake{
		// What a class used above its grant is taken from the others too.
		{"T17", []string{"G5"}, []overlay.Edit{in("bucket.go", `	lo, borrow := bits.Sub64(lo, uint64(taken), 0)
`, `	if mistake("T17") {
		for c := range b.subs {
			part := min(b.subs[c].level, int64(lo)-taken)
			b.subs[c].level -= part
			taken += part
		}
	}
	lo, borrow := bits.Sub64(lo, uint64(taken), 0)
`)}},
		// What a full sub-bucket can't hold pays no debts of others.
		{"T18", []string{"debts"}, []overlay.Edit{
			in("advance.go", `		default:
			f.free += weight
`, `		default:
			if !mistake("T18") {
				f.free += weight
			}
`),
			in("advance.go", `		spare += in - part
`, `		if !mistake("T18") {
			spare += in - part
		}
`),
		}},
	}
}

// guaranteeing is about what classes have of their own.
func guaranteeing() []Mistake {
	return []Mistake{
		// A class may ask for the whole burst, though it can never have it.
		{"T19", []string{"G6"}, []overlay.Edit{{
			File: "fsm/decide.go", Text: `n > s.EffectiveBurst(class)`,
			With: `n > s.EffectiveBurst(class) && (!mistake("T19") || n > s.Burst())`,
		}}},
		// What comes back is free for all.
		{"T20", []string{"G5", "time"}, []overlay.Edit{in("bucket.go",
			`s.classes[class].room-b.sub(class).level); part > 0 {`,
			`s.classes[class].room-b.sub(class).level); part > 0 && !mistake("T20") {`)}},
		// A class keeps fractions of tokens for itself, which others then lack.
		{"T21", []string{"G6", "G7"}, []overlay.Edit{in("shape.go", `		s.classes[i].room = c.SubBurst * s.unit
`, `		s.classes[i].room = c.SubBurst * s.unit
		if mistake("T21") && s.named {
			s.classes[i].room += s.unit / 2
		}
`), in("retryafter.go", `	for !ahead.affords(class, wants) {
`, `	for turns := 0; !ahead.affords(class, wants); turns++ {
		if turns > 1000 && mistake("T21") {
			return 0, false
		}
`)}},
	}
}

// waitingRoom is about who waits.
func waitingRoom() []Mistake {
	return []Mistake{
		// The time in the queue is not added to the life of a lease.
		{"T24", []string{"held"}, []overlay.Edit{waits("flight.go", `	if w.queued {
		// The holder`, `	if w.queued && !mistake("T24") {
		// The holder`)}},
		// A queue survives its leadership.
		{"T25", []string{"queue"}, []overlay.Edit{waits("desk.go", `	d.mu.leads = false
	for _, one`, `	d.mu.leads = false
	if mistake("T25") {
		d.mu.Unlock()
		return
	}
	for _, one`)}},
		// What was granted to nobody is left to end by itself.
		{"T26", []string{"abandoned"}, []overlay.Edit{waits("flight.go",
			`	if heard || f.claimed`, `	if mistake("T26") || heard || f.claimed`)}},
		// Whoever comes may take what the head waits for.
		{"T27", []string{"G6"}, []overlay.Edit{waits("arrive.go",
			`busyLocked(acquire); busy {`, `busyLocked(acquire); busy && !mistake("T27") {`)}},
		// What overflows from a class's full part is anybody's, also while it waits.
		{"T48", []string{"G6"}, []overlay.Edit{{
			File: "cluster/queue/keep.go", Text: `			kept += l.kept(now, dimension)
`, With: `			if !mistake("T48") {
				kept += l.kept(now, dimension)
			}
`,
		}}},
	}
}

// counting is about retry budgets.
func counting() []Mistake {
	return []Mistake{
		// Reports are added up.
		{"T29", []string{"G12"}, []overlay.Edit{{
			File: "fsm/tally/tally.go", Text: `	after := one.Max(r.Count)
`, With: `	after := one.Max(r.Count)
	if mistake("T29") {
		after = one.Plus(r.Count)
	}
`,
		}}},
		// A node's part of the headroom is rounded down.
		{"T49", []string{"G12"}, []overlay.Edit{{
			File: "fsm/retry/budget.go", Text: `if headroom%n > 0 {`, With: `if headroom%n > 0 && !mistake("T49") {`,
		}}},
	}
}

// timing is about time.
func timing() []Mistake {
	return []Mistake{
		// The wait is what lacks over the whole rate, as if no other class filled up.
		{"T36", []string{"G7"}, []overlay.Edit{in("retryafter.go", `	var parts [MaxClasses]sub
	ahead := b.onto(parts[:], s)
	wants := n * s.unit
`, `	if mistake("T36") && s.total > 0 {
		return uint64(max(1, divUp(n*s.unit-b.free-b.sub(class).level, s.total))), true
	}
	var parts [MaxClasses]sub
	ahead := b.onto(parts[:], s)
	wants := n * s.unit
`)}},
		// Refill and paying back happen in one step, however long it is.
		{"T47", []string{"time", "G7"}, []overlay.Edit{in("advance.go", `	for left > 0 {
		f := b.flow(s)
`, `	for mistake("T47") && left > 0 {
		b.leap(s, b.flow(s), left)
		for c := range b.subs {
			b.subs[c].debt = max(0, b.subs[c].debt)
		}
		left = 0
	}
	for left > 0 {
		f := b.flow(s)
`)}},
	}
}
