package member

import (
	"time"

	"github.com/quorlease/quorlease/bench/sim/judge"
	"github.com/quorlease/quorlease/bench/sim/quorum"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/cluster/membership"
)

// checks are what may be said of changes by who sees everything.
type checks struct {
	judge  *judge.Judge
	stage  *stage.Stage
	places []*place
	// now is the newest configuration that has committed, index its place in the log.
	now   *quorum.Configuration
	index uint64
	// joined is when a place was first to be a member. removed and wiped never are again.
	joined         map[int]time.Duration
	removed, wiped map[int]bool
	// knew: by what it had applied a place was a member.
	knew map[int]bool
	// lost is when somebody lost a disk last.
	lost time.Duration
}

func newChecks(j *judge.Judge, s *stage.Stage) checks {
	founders := &quorum.Configuration{}
	for id := range Founders {
		founders.Servers = append(founders.Servers, quorum.Server{ID: id, Voter: true})
	}
	return checks{
		judge: j, stage: s, now: founders, joined: make(map[int]time.Duration), removed: make(map[int]bool),
		wiped: make(map[int]bool), knew: make(map[int]bool), lost: -time.Hour,
	}
}

// watch notes who knows what.
func (k *checks) watch() {
	k.stage.At(nil, lookEvery, k.watch)
	for _, p := range k.places {
		k.learn(p)
	}
}

// learn notes whether a place knows that it is a member. One that never did has promised
// nobody anything.
func (k *checks) learn(p *place) {
	certain, _ := p.member.Certain()
	if _, known := certain.Find(p.id); known {
		k.knew[p.id] = true
	}
}

// committed takes the configurations as the log has them: each is one change of the one
// before, and who was removed stays so.
func (k *checks) committed(index uint64, next *quorum.Configuration) {
	differ := 0
	for _, s := range k.now.Servers {
		if other, known := next.Find(s.ID); !known || other != s {
			differ++
			k.removed[s.ID] = k.removed[s.ID] || !known
		}
	}
	for _, s := range next.Servers {
		if _, known := k.now.Find(s.ID); known {
			continue
		}
		differ++
		if k.learn(k.places[s.ID]); k.wiped[s.ID] || k.removed[s.ID] && k.knew[s.ID] {
			k.judge.Complain("members", "%s was removed, or lost its disk, and is a member again at index %d",
				k.places[s.ID].host.Name, index)
		}
	}
	if differ > 1 {
		k.judge.Complain("members", "index %d changes %d members at once", index, differ)
	}
	k.now, k.index = next, index
}

// steadyLeast is for how long a member learns at least, with room for clocks.
const steadyLeast = membership.SteadyLeast - 100*time.Millisecond

// awayMost is after how long everybody has noticed that somebody is away.
const awayMost = time.Second

// decided looks at a change that a leader is about to make. It is not to be made where a
// disk was lost in the moment since it looked.
func (k *checks) decided(leader, about *place, action membership.Action, next *quorum.Configuration) bool {
	now := k.stage.Real()
	if _, latest := leader.member.Latest(); latest > k.index {
		k.judge.Complain("members", "%s is to %s %s, and the change at index %d has not committed", leader.host.Name, action,
			about.host.Name, latest)
	}
	first, known := k.joined[about.id]
	switch action {
	case membership.AddLearner:
		if !known {
			k.joined[about.id] = now
		}
	case membership.GiveVote:
		if known && now-first < steadyLeast {
			k.judge.Complain("members", "%s gets a vote %v after it came", about.host.Name, now-first)
		}
	case membership.TakeVote, membership.TakeOut:
		if about == leader {
			k.judge.Complain("members", "%s leads, and is to %s itself", leader.host.Name, action)
		}
	case membership.Nothing, membership.Move, membership.HandOver:
	}
	if now-leader.looked > 2*lookEvery {
		// It was suspended, and acts on what it knew.
		return now-k.lost > awayMost
	}
	voters, there := 0, 0
	for _, s := range next.Servers {
		if !s.Voter {
			continue
		}
		voters++
		if since, away := k.places[s.ID].host.Away(); !away || now-since < awayMost {
			there++
		}
	}
	if voted := leader.votes(about.id) || next.Votes(about.id); voted && 2*there <= voters {
		k.judge.Complain("members", "%s is to %s %s: of %d voters %d are there", leader.host.Name, action, about.host.Name,
			voters, there)
	}
	return now-k.lost > awayMost
}

// votes says whether somebody is a voter by what a place has.
func (p *place) votes(id int) bool {
	latest, _ := p.member.Latest()
	return latest.Votes(id)
}

// nothing looks at what is said to be so already.
func (k *checks) nothing(r membership.Request, latest *quorum.Configuration) {
	if r.Verb != membership.Add {
		return
	}
	for _, p := range k.places {
		if _, member := latest.Find(p.id); p.host.Name == r.Found.RaftID && !member {
			k.judge.Complain("members", "%s is said to be a member, and is none", r.Found.RaftID)
		}
	}
}
