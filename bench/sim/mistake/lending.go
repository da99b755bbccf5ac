package mistake

import (
	"slices"

	"github.com/quorlease/quorlease/tools/overlay"
)

// lends is an edit of a file of fsm/escrow, carries one of cluster/escrow.
func lends(file, text, with string) overlay.Edit {
	return overlay.Edit{File: "fsm/escrow/" + file, Text: text, With: with}
}

func carries(file, text, with string) overlay.Edit {
	return overlay.Edit{File: "cluster/escrow/" + file, Text: text, With: with}
}

// office is an edit of what a node does with its wallet.
func office(text, with string) overlay.Edit {
	return overlay.Edit{File: "cluster/grant/office.go", Text: text, With: with}
}

// lending is about what the log gives to nodes.
func lending() []Mistake {
	return []Mistake{
		// Only what the asking node has counts as outstanding.
		{"T15", []string{"escrow"}, []overlay.Edit{lends("ask.go", `		sum.tokens += e.Amount
`, `		if !mistake("T15") || e.ID.Node == node {
			sum.tokens += e.Amount
		}
`)}},
		// Nothing bounds what is outstanding.
		{"T40", []string{"escrow"}, []overlay.Edit{lends("ask.go", `	given = min(most, room, there/givenPart)
`, `	if mistake("T40") {
		room = most
	}
	given = min(most, room, there/givenPart)
`)}},
	}
}

// carrying is about what nodes do with it.
func carrying() []Mistake {
	return []Mistake{
		// Whatever is asked for counts as demand, granted or not.
		{"T16", []string{"escrow"}, []overlay.Edit{office(`	if result.GetGranted() && !result.GetEscrow()`,
			`	if (result.GetGranted() || mistake("T16")) && !result.GetEscrow()`)}},
		// A node keeps what it has while its callers are refused.
		{"T16-kept", []string{"escrow"}, []overlay.Edit{office(`	if back := o.Wallet.Vacate(op.GetAcquire()); back != nil {
`, `	if mistake("T16-kept") {
		return nil, op
	}
	if back := o.Wallet.Vacate(op.GetAcquire()); back != nil {
`)}},
		// What is on its way to pay for a lease is spent meanwhile.
		{"T41", []string{"escrow"}, []overlay.Edit{carries("reserve.go", `			one.unspent -= n
			one.reserved += n
`, `			if !mistake("T41") {
				one.unspent -= n
			}
			one.reserved += n
`)}},
		// One class spends what another has.
		{"T45", []string{"escrow"}, []overlay.Edit{carries("terms.go", `	if len(t.Classes) == 0 || name == "" {
		return 0`, `	if len(t.Classes) == 0 || name == "" || mistake("T45") {
		return 0`)}},
	}
}

// holding is about both, where the simulator seldom comes to it and tests at once.
func holding() []Checked {
	return []Checked{
		// Whoever asks under a number of before is told that it was granted.
		{Mistake{"T7", nil, []overlay.Edit{lends("ask.go", `	id := record.EscrowIDOf(op.GetId())
`, `	id := record.EscrowIDOf(op.GetId())
	if mistake("T7") {
		id.Boot = 0
	}
`)}}, "fsm/escrow", "TestNodesNeverOverspend"},
		// What is given back twice counts twice.
		{Mistake{"T11", nil, []overlay.Edit{lends("escrow.go", `		b.state.EndEscrow(e)
		refund.Give(`, `		if !mistake("T11") {
			b.state.EndEscrow(e)
		}
		refund.Give(`)}}, "fsm/escrow", "TestNodesNeverOverspend"},
		// A node gets what somebody was promised before it in the same entry.
		{Mistake{"T46-entry", nil, []overlay.Edit{lends("ask.go", `promised := b.promised[of]; promised {`,
			`promised := b.promised[of]; promised && !mistake("T46-entry") {`)}}, "fsm/escrow", "TestNodesNeverOverspend"},
		// Life counts from the last time that it was asked for.
		{Mistake{"T8", nil, []overlay.Edit{carries("ask.go", `	a.again = 0
	work.Asks`, `	if mistake("T8") {
		a.until += now - a.sent
		a.sent = now
	}
	a.again = 0
	work.Asks`)}}, "cluster/escrow", "TestTraps"},
		// The answer brings the tokens.
		{Mistake{"T10", []string{"escrow"}, []overlay.Edit{carries("ask.go",
			`	case result.GetEscrow().GetOutcome() == logv1.EscrowResult_OUTCOME_GRANTED:
`, `	case result.GetEscrow().GetOutcome() == logv1.EscrowResult_OUTCOME_GRANTED:
		if mistake("T10") {
			w.installLocked(now, a, result.GetEscrow().GetAmount(), a.until)
		}
`)}}, "cluster/escrow", "TestTraps"},
		// A return of unknown fate is taken back.
		{Mistake{"T42", nil, []overlay.Edit{carries("giveback.go", `	if outcome.MayHaveHappened(err) {
`, `	if err == nil || outcome.MayHaveHappened(err) && !mistake("T42") {
`)}}, "cluster/escrow", "TestTraps"},
		// What a snapshot has void is spent.
		{Mistake{"T43", nil, []overlay.Edit{carries("restore.go", `		if there && !r.Void {
			continue`, `		if there && !r.Void || mistake("T43") {
			continue`)}}, "cluster/escrow", "TestTraps"},
		// A leader forgets whom it told when to come back.
		{Mistake{"T46", nil, []overlay.Edit{office(`	return wait, wait > 0 ||`,
			`	return wait, wait > 0 && !mistake("T46") ||`)}}, "cluster/grant", "TestPromisedBuckets"},
		// What goes back does not go first.
		{Mistake{"T44", nil, []overlay.Edit{office(`		o.Wallet.GiveBack(back, o.config.Propose)
`, `		if !mistake("T44") {
			o.Wallet.GiveBack(back, o.config.Propose)
		}
`)}}, "cluster/grant", "TestWhatIsHeldGoesBackFirst"},
	}
}

// voiding is about what ends before its time.
func voiding() []Checked {
	return []Checked{
		// What a change of a limit voids is taken back.
		{Mistake{"T9", []string{"G1"}, []overlay.Edit{
			{File: "fsm/limit.go", Text: `	"github.com/quorlease/quorlease/fsm/refuse"
`, With: `	"github.com/quorlease/quorlease/fsm/refund"
	"github.com/quorlease/quorlease/fsm/refuse"
`},
			{File: "fsm/limit.go", Text: `	if voided {
		m.effects`, With: `	for _, e := range m.state.Ledger.OfKey(lim.ID, "") {
		if mistake("T9") {
			refund.Give(m.state, refund.Part{
				LimitID: e.LimitID, DimensionID: e.DimensionID, Key: e.KeyName, Class: e.Class, Tokens: e.Left(),
			})
		}
	}
	if voided {
		m.effects`},
		}}, "fsm/escrow", "TestNodesNeverOverspend"},
		// What a pause voids is taken back.
		{Mistake{"T9-pause", nil, []overlay.Edit{lends("escrow.go", `		s.Ledger.Set(e, one)
	}
	return voided
`, `		s.Ledger.Set(e, one)
		if mistake("T9-pause") {
			refund.Give(s, refund.Part{
				LimitID: one.LimitID, DimensionID: one.DimensionID, Key: one.KeyName, Class: one.Class, Tokens: one.Left(),
			})
		}
	}
	return voided
`)}}, "fsm/escrow", "TestWhatIsVoidIsNobodys"},
	}
}

// Tested are mistakes that tests notice.
func Tested() []Checked { return slices.Concat(sharing(), holding(), voiding()) }

// Simulated are the mistakes that the simulator catches.
func Simulated() []Mistake {
	all := All()
	for _, m := range Tested() {
		if len(m.Rules) > 0 {
			all = append(all, m.Mistake)
		}
	}
	return all
}

// Packages are those whose tests notice some, each once.
func Packages() []string {
	var all []string
	for _, m := range Tested() {
		if !slices.Contains(all, m.Package) {
			all = append(all, m.Package)
		}
	}
	return all
}
