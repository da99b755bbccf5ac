package mistake

import "github.com/quorlease/quorlease/tools/overlay"

// book is an edit of a file of fsm/shares.
func book(file, text, with string) overlay.Edit {
	return overlay.Edit{File: "fsm/shares/" + file, Text: text, With: with}
}

// sharing is about limits that clients share while nobody answers them: the simulator
// catches what tests notice too.
func sharing() []Checked {
	shared, g1 := []string{"shares"}, []string{"G1"}
	return []Checked{
		// Who comes is promised an equal part, whatever the others remember.
		{Mistake{"T33", shared, []overlay.Edit{book("book.go", `	sessions, others := b.Sessions(e.ID.Limit)
`, `	sessions, others := b.Sessions(e.ID.Limit)
	if mistake("T33") {
		others = 0
	}
`)}}, "fsm/shares", "TestRememberedShares"},
		// A smaller promise counts before its session knows of it.
		{Mistake{"T50", shared, []overlay.Edit{book("entry.go", `	return e.promises[0].PPM
`, `	if mistake("T50") {
		return e.newest().PPM
	}
	return e.promises[0].PPM
`)}}, "fsm/shares", "TestCutOffOneAfterAnother"},
		// What a session may still be using is given to others when it is not heard of.
		{
			Mistake{"T50-hold", shared, []overlay.Edit{book("entry.go", `int64(e.heard) + int64(Hold)`,
				`int64(e.heard) + int64(map[bool]time.Duration{false: Hold, true: ValidFor}[mistake("T50-hold")])`)}},
			"fsm/shares", "TestSumOfShares",
		},
		// The refill of an outage is handed out to whoever comes first.
		{Mistake{"T51", shared, []overlay.Edit{book("passage.go", `		if o.To <= b.Last() {
`, `		if o.To <= b.Last() || mistake("T51") {
`)}}, "fsm", "TestOutage"},
		// What nobody used in an outage comes back to a bucket that had no room for it.
		{Mistake{"T51-room", g1, []overlay.Edit{book("passage.go", `		withheld = min(add(withheld, lost), b.Room(s))
`, `		if room := b.Room(s); !mistake("T51-room") {
			withheld = min(add(withheld, lost), room)
		} else {
			withheld = add(withheld, lost)
		}
`), book("passage.go", `	return min(withheld, b.Room(s))
`, `	if mistake("T51-room") {
		return withheld
	}
	return min(withheld, b.Room(s))
`)}}, "fsm", "TestOutage"},
		// Nobody has promised anything, so each newcomer takes what the file says.
		{Mistake{"T52", shared, []overlay.Edit{{File: "client/failopen/machine.go", Text: `	if booked {
		f.SharePPM = nil
	}
`, With: `	if booked && !mistake("T52") {
		f.SharePPM = nil
	}
`}}}, "client/failopen", "TestPromises"},
	}
}
