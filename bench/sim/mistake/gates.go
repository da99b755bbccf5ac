package mistake

import "github.com/quorlease/quorlease/tools/overlay"

// slots is about limits of concurrency and sessions.
func slots() []Mistake {
	return []Mistake{
		// A renewal decided without looking whether the lease has ended revives it.
		{"T28", []string{"slots"}, []overlay.Edit{{
			File: "fsm/lease/renew.go", Text: `	content := sumRenewal(l, op, used)
`, With: `	if mistake("T28") && !l.Open() && l.OnlySlots() {
		one := l.Lease
		one.State, one.ForgetAt, one.SettleUntil, one.Session = 1, 0, b.state.Now+1, [16]byte{}
		b.state.ForgetLease(l)
		b.state.AddLease(one)
		l = b.state.FindLease(one.ID)
	}
	content := sumRenewal(l, op, used)
`,
		}}},
		// Slots stay taken when their lease ends by itself.
		{"slots-kept", []string{"slots"}, []overlay.Edit{
			{File: "fsm/state/lease.go", Text: `		l.freeSlots()
`, With: `		kept := mistake("slots-kept") && state == logv1.LeaseState_LEASE_STATE_EXPIRED
		for h := l.holds; h != nil && kept; h = h.next {
			h.limit.slots[h.key].held.Set(h, 1<<62)
			l.holds = nil
		}
		l.freeSlots()
`},
		}},
		// Slots that are given back are given back twice.
		{"slots-twice", []string{"slots"}, []overlay.Edit{{
			File: "fsm/state/slots.go", Text: `		one.total -= h.amount
`, With: `		one.total -= h.amount
		if mistake("slots-twice") {
			one.total -= h.amount
		}
`,
		}}},
		// A newer connection does not bring a session back.
		{"session-lost", []string{"slots"}, []overlay.Edit{{
			File: "fsm/lease/session.go", Text: `		next.Connection, next.Ends = connection, 0
`, With: `		next.Connection = connection
		if !mistake("session-lost") {
			next.Ends = 0
		}
`,
		}}},
	}
}

// pauses is about what providers say.
func pauses() []Mistake {
	return []Mistake{
		// A snapshot forgets until when a key is paused.
		{"pause-lost", []string{"pause", "G9"}, []overlay.Edit{
			{File: "fsm/record/control.go", Text: `Key: c.ID.Key, From: int64(c.From), PausedUntil: int64(c.Pace.Opens),
`, With: `Key: c.ID.Key, From: int64(c.From), PausedUntil: unpaused(c),
`},
			{File: "fsm/record/control.go", Text: `	sum.Int(int64(c.Pace.Opens))
`, With: `	sum.Int(unpaused(c))
`},
			{File: "fsm/record/control.go", Text: `// Save is the control for a snapshot.
`, With: `func unpaused(c *Control) int64 {
	if mistake("pause-lost") {
		return int64(c.From)
	}
	return int64(c.Pace.Opens)
}

// Save is the control for a snapshot.
`},
		}},
		// A pause that was said is shortened by the next one.
		{"pause-cut", []string{"pause"}, []overlay.Edit{{
			File: "fsm/feedback/decide.go", Text: `longer := c.Lowered(now), until > c.Pace.Opens && s.GetWait() > 0
`, With: `longer := c.Lowered(now), (until > c.Pace.Opens || mistake("pause-cut")) && s.GetWait() > 0
`,
		}}},
	}
}
