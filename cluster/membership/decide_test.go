package membership

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// voter and learner are members that do well; n1 leads.
func voter(n int) Member {
	return Member{
		RaftID: idOf(n), Name: fmt.Sprintf("n%d", n), Address: fmt.Sprintf("n%d:7201", n), Voter: true,
		Answers: true, Steady: time.Minute,
	}
}

func learner(n int) Member {
	m := voter(n)
	m.Voter = false
	return m
}

func idOf(n int) string { return fmt.Sprintf("n%d.0000000%d", n, n) }

func silent(m Member) Member {
	m.Answers = false
	return m
}

func behind(m Member, lag uint64) Member {
	m.Lag, m.Steady = lag, 0
	return m
}

func fresh(m Member, steady time.Duration) Member {
	m.Steady = steady
	return m
}

func led(members ...Member) View { return View{Leader: idOf(1), Members: members} }

func three() View { return led(voter(1), voter(2), voter(3)) }

// comes is the wish to add node n, which is as it should be but for the change.
func comes(n int, change func(*Request)) Request {
	m := learner(n)
	r := Request{Verb: Add, Name: m.Name, Address: m.Address, Found: Candidate{
		RaftID: m.RaftID, Name: m.Name, Address: m.Address,
	}}
	if change != nil {
		change(&r)
	}
	return r
}

func wish(v Verb, n int) Request { return Request{Verb: v, Name: fmt.Sprintf("n%d", n)} }

var decisions = []struct {
	name    string
	view    View
	request Request
	want    Action
	// about is the Raft id of the step.
	about string
	// cause and reason are those of the error wanted.
	cause  error
	reason string
}{
	{"R31_a_node_comes_as_a_learner", three(), comes(4, nil), AddLearner, idOf(4), nil, ""},
	{"added_before", led(voter(1), learner(4)), comes(4, nil), Nothing, idOf(4), nil, ""},
	{
		"R35_a_member_at_another_address", three(),
		comes(2, func(r *Request) { r.Address, r.Found.Address, r.Found.WasMember = "h:1", "h:1", true }),
		Move, idOf(2), nil, "",
	},
	{
		"R37_an_empty_directory_under_a_known_name", three(),
		comes(2, func(r *Request) { r.Found.RaftID = "n2.99999999" }),
		0, "", ErrRefused, "n2 is a member with another data directory; remove it first",
	},
	{
		"R33_a_directory_that_was_removed", three(),
		comes(4, func(r *Request) { r.Found.WasMember = true }),
		0, "", ErrRefused, "n4.00000004 was a member with its data directory, and was removed",
	},
	{
		"R32_an_address_that_is_taken", three(),
		comes(4, func(r *Request) { r.Address, r.Found.Address = "n2:7201", "n2:7201" }),
		0, "", ErrRefused, "n2 has the address n2:7201; remove it first",
	},
	{
		"another_node_answers", three(), comes(4, func(r *Request) { r.Found.Name = "n9" }),
		0, "", ErrRefused, "is called n9, not n4",
	},
	{
		"it_advertises_another_address", three(), comes(4, func(r *Request) { r.Found.Address = "x:1" }),
		0, "", ErrRefused, "n4 advertises x:1, not n4:7201",
	},
	{"R31_promoted", led(voter(1), voter(2), voter(3), learner(4)), wish(Promote, 4), GiveVote, idOf(4), nil, ""},
	{"promoted_before", three(), wish(Promote, 2), Nothing, idOf(2), nil, ""},
	{"promote_a_stranger", three(), wish(Promote, 4), 0, "", ErrUnknown, "n4"},
	{
		"R31_a_learner_that_lags", led(voter(1), behind(learner(4), 1204)), wish(Promote, 4),
		0, "", ErrNotReady, "n4 is 1204 entries behind, fewer than 250 are needed",
	},
	{
		"R31_exactly_at_the_bound", led(voter(1), behind(learner(4), 250)), wish(Promote, 4),
		0, "", ErrNotReady, "250 entries behind",
	},
	{
		"R31_a_learner_that_has_just_caught_up", led(voter(1), fresh(learner(4), 3200*time.Millisecond)),
		wish(Promote, 4), 0, "", ErrNotReady, "n4 has kept up for 3.2 s, 10 s are needed",
	},
	{
		"just_steady_enough", led(voter(1), fresh(learner(4), SteadyLeast)),
		wish(Promote, 4), GiveVote, idOf(4), nil, "",
	},
	{
		"R31_a_learner_that_is_silent", led(voter(1), silent(learner(4))), wish(Promote, 4),
		0, "", ErrNotReady, "n4 does not answer",
	},
	{
		"promoted_beside_one_that_is_away", led(voter(1), voter(2), silent(voter(3)), learner(4)),
		wish(Promote, 4), GiveVote, idOf(4), nil, "",
	},
	{
		"promoted_where_it_makes_no_majority",
		led(voter(1), silent(voter(2)), silent(voter(3)), learner(4)), wish(Promote, 4),
		0, "", ErrRefused, "there are 4 voters, of which 3 are needed and 2 healthy: n2 does not answer, n3 does not answer",
	},
	{"removed", three(), wish(Remove, 3), TakeOut, idOf(3), nil, ""},
	{
		"remove_one_that_is_away", led(voter(1), voter(2), silent(voter(3))),
		wish(Remove, 3), TakeOut, idOf(3), nil, "",
	},
	{
		"R31_removed_beside_one_that_is_away", led(voter(1), voter(2), silent(voter(3))), wish(Remove, 2),
		0, "", ErrRefused, "without the vote of n2 there are 2 voters, of which 2 are needed and 1 healthy: n3 does not",
	},
	{
		"R31_removed_beside_one_that_lags", led(voter(1), voter(2), behind(voter(3), 900)), wish(Remove, 2),
		0, "", ErrRefused, "n3 is 900 entries behind",
	},
	{
		"remove_a_learner_whatever_ails", led(voter(1), silent(voter(2)), learner(4)),
		wish(Remove, 4), TakeOut, idOf(4), nil, "",
	},
	{
		"R33_the_leader_hands_over_before_it_goes", led(voter(1), behind(voter(2), 9), voter(3)),
		wish(Remove, 1), HandOver, idOf(3), nil, "",
	},
	{"the_only_voter", led(voter(1), learner(2)), wish(Remove, 1), 0, "", ErrRefused, "n1 is the only voter"},
	{"demoted", three(), wish(Demote, 2), TakeVote, idOf(2), nil, ""},
	{"demoted_before", led(voter(1), learner(2)), wish(Demote, 2), Nothing, idOf(2), nil, ""},
	{"the_leader_hands_over_before_it_is_demoted", three(), wish(Demote, 1), HandOver, idOf(2), nil, ""},
	{
		"transfer_to_the_best", led(voter(1), silent(voter(2)), behind(voter(3), 20), behind(voter(4), 3), learner(5)),
		Request{Verb: Transfer},
		HandOver, idOf(4), nil, "",
	},
	{"transfer_to_a_name", three(), wish(Transfer, 3), HandOver, idOf(3), nil, ""},
	{"transfer_to_the_leader", three(), wish(Transfer, 1), Nothing, idOf(1), nil, ""},
	{"transfer_to_a_learner", led(voter(1), learner(2)), wish(Transfer, 2), 0, "", ErrRefused, "n2 is a learner"},
	{
		"transfer_to_one_that_is_away", led(voter(1), silent(voter(2))),
		wish(Transfer, 2), 0, "", ErrRefused, "n2 does not answer",
	},
	{
		"transfer_to_nobody", led(voter(1), silent(voter(2)), learner(3)),
		Request{Verb: Transfer},
		0, "", ErrRefused, "no other voter can lead: n2 does not answer",
	},
	{"a_verb_that_is_none", three(), wish(0, 2), 0, "", ErrRefused, "verb 0"},
	{
		"R31_one_change_at_a_time",
		View{Leader: idOf(1), Members: three().Members, Pending: true},
		wish(Remove, 2), 0, "", ErrBusy, "",
	},
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, c := range decisions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Decide(c.view, c.request)
			if !errors.Is(err, c.cause) || c.cause == nil && err != nil {
				t.Fatalf("got %+v, %v, want cause %v", got, err, c.cause)
			}
			if err != nil && !strings.Contains(err.Error(), c.reason) {
				t.Errorf("got %q, want it to say %q", err, c.reason)
			}
			if got.Action != c.want || got.RaftID != c.about {
				t.Errorf("got %+v, want action %d about %s", got, c.want, c.about)
			}
		})
	}
}

// Whatever the view, no step leaves fewer healthy voters than a majority needs that
// had one before, nobody gets a vote at once, and nobody who leads goes.
func TestR31NoStepCostsTheMajority(t *testing.T) {
	t.Parallel()
	states := []func(Member) Member{
		func(m Member) Member { return m }, silent,
		func(m Member) Member { return behind(m, 5000) },
		func(m Member) Member { m.Voter = false; return m },
		func(m Member) Member { m.Voter = false; return silent(m) },
	}
	const others = 4
	total := 1
	for range others {
		total *= len(states)
	}
	for mask := range total {
		view, rest := led(voter(1)), mask
		for n := 2; n < 2+others; n++ {
			view.Members = append(view.Members, states[rest%len(states)](voter(n)))
			rest /= len(states)
		}
		if all, healthy, _ := view.voters(""); healthy < majority(all) {
			continue
		}
		for _, verb := range []Verb{Remove, Promote, Demote} {
			for n := 1; n < 2+others; n++ {
				got, err := Decide(view, wish(verb, n))
				if err != nil {
					continue
				}
				after := applied(view, got)
				if all, healthy, _ := after.voters(""); healthy < majority(all) {
					t.Fatalf("%+v in %+v leaves %d healthy of %d voters", got, view, healthy, all)
				}
				if got.RaftID == view.Leader && got.Action != Nothing {
					t.Fatalf("%+v is about the leader", got)
				}
			}
		}
	}
}

// applied is the view after a step.
func applied(v View, s Step) View {
	after := View{Leader: v.Leader}
	for _, m := range v.Members {
		if m.RaftID == s.RaftID {
			switch s.Action {
			case TakeOut:
				continue
			case GiveVote:
				m.Voter = true
			case TakeVote:
				m.Voter = false
			case Nothing, AddLearner, Move, HandOver:
			}
		}
		after.Members = append(after.Members, m)
	}
	return after
}
