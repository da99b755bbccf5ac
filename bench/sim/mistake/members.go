package mistake

import "github.com/quorlease/quorlease/tools/overlay"

// decides is an edit of what a leader decides about members.
func decides(text, with string) overlay.Edit {
	return overlay.Edit{File: "cluster/membership/decide.go", Text: text, With: with}
}

// members is about who comes, votes and goes.
func members() []Mistake {
	rules := []string{"members"}
	return []Mistake{
		// A change does not wait for the one before.
		{"R31-pending", rules, []overlay.Edit{decides(`	if v.Pending {
`, `	if v.Pending && !mistake("R31-pending") {
`)}},
		// A learner gets a vote before it has kept up.
		{"R31-steady", rules, []overlay.Edit{decides(`	if m.Steady < SteadyLeast {
`, `	if m.Steady < SteadyLeast && !mistake("R31-steady") {
`)}},
		// Voters that are away count as those that are there.
		{"R31-healthy", rules, []overlay.Edit{decides(`	case healthy < need:
`, `	case healthy < need && !mistake("R31-healthy"):
`)}},
		// A leader takes its own vote.
		{"R33-leader", rules, []overlay.Edit{decides(`	case m.RaftID == v.Leader:
		return hand(v)
	}
	return step(a, m), nil
`, `	case m.RaftID == v.Leader && !mistake("R33-leader"):
		return hand(v)
	}
	return step(a, m), nil
`)}},
		// Who was removed comes back with its directory.
		{"R33-again", rules, []overlay.Edit{decides(`	case found.WasMember:
`, `	case found.WasMember && !mistake("R33-again"):
`)}},
		// Another directory under a name is taken for the member.
		{"R37", rules, []overlay.Edit{decides(`	case known && m.RaftID != found.RaftID:
`, `	case known && m.RaftID != found.RaftID && !mistake("R37"):
`)}},
	}
}
