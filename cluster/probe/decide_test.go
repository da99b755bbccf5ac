package probe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	window   = 750 * time.Millisecond
	patience = 3 * time.Second
	now      = time.Minute
)

// said is "id age reached…": what a peer answered, so many milliseconds ago.
func said(lines ...string) map[string]answer {
	answers := make(map[string]answer)
	for _, line := range lines {
		f := strings.Fields(line)
		age, err := time.ParseDuration(f[1])
		if err != nil {
			panic(err)
		}
		answers[f[0]] = answer{at: now - age, reached: f[2:]}
	}
	return answers
}

var (
	threeVoters = []string{"a", "b", "c"}
	fiveVoters  = []string{"a", "b", "c", "d", "e"}
)

var decisions = []struct {
	name    string
	voters  []string
	answers map[string]answer
	leader  string
	// proof is the age of Raft's proof of the leader; majority is that of the
	// last majority within reach.
	proof, majority time.Duration
	want            State
}{
	{"all_answer", threeVoters, said("b 1ms a b c", "c 1ms a b c"), "b", 0, 0, HasLeader},
	{"G8_all_answer_and_nobody_leads", threeVoters, said("b 1ms a b c", "c 1ms a b c"), "", 0, 0, NoLeader},
	{"G8_one_is_gone", threeVoters, said("b 1ms a b"), "b", 0, 0, HasLeader},
	{"the_leader_is_gone_and_forgotten", threeVoters, said("c 1ms a c"), "", 0, 0, NoLeader},
	{"G8_both_are_gone", threeVoters, nil, "", 0, 0, NoQuorum},
	{"an_answer_at_the_end_of_its_window", threeVoters, said("b 750ms a b"), "", 0, 0, NoLeader},
	{"an_answer_past_its_window", threeVoters, said("b 751ms a b"), "", 0, 0, NoQuorum},
	{"alone_of_one", []string{"a"}, nil, "a", 0, 0, HasLeader},
	{"alone_of_one_before_it_leads", []string{"a"}, nil, "", 0, 0, NoLeader},
	{"no_voters_known", nil, said("b 1ms"), "", 0, 0, NoQuorum},
	{"two_of_four_are_no_majority", []string{"a", "b", "c", "d"}, said("b 1ms a b"), "", 0, 0, NoQuorum},
	{"a_neighbour_reaches_the_rest", fiveVoters, said("b 1ms a b c"), "", 0, 0, NoLeader},
	{"a_neighbour_reaches_no_more", fiveVoters, said("b 1ms a b"), "", 0, 0, NoQuorum},
	{"a_neighbour_counts_others_than_voters", fiveVoters, said("b 1ms a b x y z"), "", 0, 0, NoQuorum},
	{"a_learner_speaks_for_those_it_reaches", fiveVoters, said("z 1ms b c d"), "", 0, 0, NoLeader},
	{"a_learner_is_no_voter", threeVoters, said("z 1ms"), "", 0, 0, NoQuorum},
	{"raft_hears_the_leader_when_probes_do_not", threeVoters, nil, "b", 700 * time.Millisecond, 0, HasLeader},
	{"raft_heard_it_too_long_ago", threeVoters, nil, "b", 751 * time.Millisecond, 0, NoQuorum},
	{"the_leader_itself_says_that_it_is_cut_off", fiveVoters, said("b 1ms a b"), "b", 0, 0, NoQuorum},
	{"a_leader_just_cut_off_may_still_step_down", threeVoters, nil, "a", 0, 1500 * time.Millisecond, HasLeader},
	{"a_leader_that_ought_to_have", threeVoters, nil, "a", 0, 1501 * time.Millisecond, NoQuorum},
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, c := range decisions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := facts{
				self: "a", voters: c.voters, answers: c.answers,
				leader: c.leader, leaderAt: now - c.proof, majorityAt: now - c.majority,
			}
			if got := f.decide(now, window); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestG8MoreAnswersAreNeverWorse: an answer can only improve what is said of
// the quorum while nobody leads, and a majority of answers is never a lost one.
func TestG8MoreAnswersAreNeverWorse(t *testing.T) {
	t.Parallel()
	t.Run("G8", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			voters := fiveVoters[:rapid.IntRange(1, 5).Draw(t, "voters")]
			answers := make(map[string]answer)
			before := NoQuorum
			for range rapid.IntRange(0, 8).Draw(t, "answers") {
				id := rapid.SampledFrom(fiveVoters).Draw(t, "id")
				if _, again := answers[id]; again {
					continue
				}
				answers[id] = answer{
					at:      now - time.Duration(rapid.IntRange(0, 1000).Draw(t, "age"))*time.Millisecond,
					reached: rapid.SliceOfDistinct(rapid.SampledFrom(fiveVoters), rapid.ID).Draw(t, "reached"),
				}
				f := facts{self: "a", voters: voters, answers: answers}
				got := f.decide(now, window)
				if got < before {
					t.Fatalf("%v after %v with one answer more: %v", got, before, answers)
				}
				if got == NoQuorum && len(f.reached(now, window)) > len(voters)/2 {
					t.Fatalf("no quorum although %v of %v are reached", f.reached(now, window), voters)
				}
				before = got
			}
		})
	})
}

// TestIncident plays states, one a second, and writes what is reported after
// each: "L" lost, "R" restored, "." nothing.
func TestIncident(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, states, want string }{
		{"G8_an_election_is_no_incident", "hhnnnhhh", "........"},
		{"G8_an_election_that_lasts_is_one", "hhnnnnnnhh", "......L.R."},
		{"G8_no_quorum_soon_and_once", "hhqqqqqqhh", "...L....R."},
		{"G8_a_node_that_saw_no_quorum_says_nothing", "qqqqnnnnnnqq", "............"},
		{"and_then_speaks", "qqhqq", "....L"},
		{"G8_a_node_that_misses_its_peers_for_an_instant", "hqhqhnqnqhq", "..........."},
		{"G8_no_restoration_by_an_election", "hqqnqnqnh", "..L.....R"},
		{"each_incident_by_itself", "hqqhqqh", "..LR.LR"},
		{"quorum_lost_during_an_election", "hnnqqh", "....LR"},
		{"elections_do_not_add_up", "hnnnhnnnhnnn", "............"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var i incident
			var got strings.Builder
			for at, s := range c.states {
				state := map[rune]State{'h': HasLeader, 'n': NoLeader, 'q': NoQuorum}[s]
				said := i.observe(time.Duration(at)*time.Second, state, patience)
				got.WriteString(map[outcome]string{nothing: ".", lost: "L", restored: "R"}[said])
			}
			if got.String() != c.want {
				t.Errorf("%s: got %s, want %s", c.states, got.String(), c.want)
			}
		})
	}
}

func TestLagging(t *testing.T) {
	t.Parallel()
	var l lagging
	var got []string
	lags := slices.Concat([]uint64{249, 250, 900, 249}, slices.Repeat([]uint64{250}, 13), []uint64{0, 250})
	for at, lag := range lags {
		if kind := l.observe(time.Duration(at)*time.Second, lag); kind != 0 {
			got = append(got, fmt.Sprint(kind == FollowerLagging, at))
		}
	}
	// Behind since second 4, so more than 10 s at second 15, and once.
	t.Run("R13_once_after_ten_seconds", func(t *testing.T) {
		if strings.Join(got, " ") != "true 15 false 17" {
			t.Errorf("reported at %v, want from 15 to 17", got)
		}
	})
}
