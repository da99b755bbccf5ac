package probe

import (
	"context"
	"slices"
	"time"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
)

// run looks twice an interval and at every answer, and asks once an interval.
func (p *Prober) run(ctx context.Context) {
	ticker := time.NewTicker(p.config.Interval / 2)
	defer ticker.Stop()
	p.ask(ctx)
	p.look()
	last := p.config.Now()
	for asks := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-ticker.C:
			now := p.config.Now()
			if now-last > p.config.Window {
				p.hold(now)
			}
			last = now
			if asks {
				p.ask(ctx)
			}
			asks = !asks
		}
		p.look()
	}
}

// hold keeps the view from getting worse for one window: this node was stopped
// or starved, so that every answer it has is old. The others may be well.
func (p *Prober) hold(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.heldUntil = now + p.config.Window
	p.mu.incident.restart(now)
}

// ask sends one round of questions. A peer that is slow has several under way,
// so that its answers come as often as those of a fast one.
func (p *Prober) ask(ctx context.Context) {
	self := p.config.Self()
	reference := p.leaderLast(self)
	most := int(p.config.Timeout/p.config.Interval) + 1
	asked := make(map[string]bool)
	for _, peer := range p.config.Peers() {
		if peer.Addr == "" || peer.RaftID == self.GetRaftId() || asked[peer.Addr] {
			continue
		}
		asked[peer.Addr] = true
		if !p.begin(peer.Addr, most) {
			continue
		}
		p.asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, p.config.Timeout)
			defer cancel()
			info, err := p.config.Ask(ctx, peer.Addr, self)
			p.end(peer.Addr)
			if err == nil && ctx.Err() == nil {
				p.answered(info, reference)
			}
		})
	}
}

func (p *Prober) begin(addr string, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.underWay[addr] >= most {
		return false
	}
	p.mu.underWay[addr]++
	return true
}

func (p *Prober) end(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.underWay[addr]--; p.mu.underWay[addr] == 0 {
		delete(p.mu.underWay, addr)
	}
}

// answered keeps an answer. The peer's lag is measured against what the leader
// had when the question was sent: measured against what it has now, the age of
// the answer would count as lag.
func (p *Prober) answered(info *peerv1.PeerInfo, reference uint64) {
	now := p.config.Now()
	p.mu.Lock()
	if m := p.memberLocked(now, info.GetRaftId()); m != nil {
		broken := !p.answersLocked(now, m)
		m.info, m.heard, m.answered, m.hasAnswered = info, now, now, true
		m.lag = lagOf(reference, info.GetAppliedIndex())
		if near := m.lag < lagMost; !near || broken || !m.steady {
			m.steady, m.steadySince = near, now
		}
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// look decides and reports.
func (p *Prober) look() {
	self := p.config.Self().GetRaftId()
	peers := p.config.Peers()
	leader := p.config.Leader()
	for _, c := range p.decide(self, peers, leader) {
		p.report(c)
	}
}

func (p *Prober) decide(self string, peers []Peer, leader Leader) (changes []Change) {
	now, window := p.config.Now(), p.config.Window
	p.mu.Lock()
	defer p.mu.Unlock()
	f := facts{
		self: self, answers: make(map[string]answer, len(p.mu.members)),
		leader: leader.RaftID, leaderAt: now - leader.Age, majorityAt: p.mu.majorityAt,
	}
	for _, peer := range peers {
		if peer.Voter && peer.RaftID != "" {
			f.voters = append(f.voters, peer.RaftID)
		}
	}
	for id, m := range p.mu.members {
		if p.answersLocked(now, m) {
			f.answers[id] = answer{at: m.answered, reached: m.info.GetReached()}
		}
	}
	if f.hasMajority(now, window) {
		p.mu.majorityAt = now
	}
	state := f.decide(now, window)
	if now < p.mu.heldUntil {
		state = max(state, p.mu.view.State)
	}
	change := p.mu.incident.observe(now, state, p.config.Patience)
	p.mu.view = View{
		State: state, Lost: p.mu.incident.open, Reached: f.reached(now, window), Voters: len(f.voters),
	}
	switch change {
	case nothing:
	case lost:
		changes = append(changes, Change{Kind: QuorumLost, View: p.mu.view})
	case restored:
		changes = append(changes, Change{Kind: QuorumRestored, View: p.mu.view})
	}
	return append(changes, p.laggingLocked(now, leader.RaftID == self, peers)...)
}

// laggingLocked finds who lags, and who does no more. Whoever does not lead
// forgets what it found.
func (p *Prober) laggingLocked(now time.Duration, leads bool, peers []Peer) (changes []Change) {
	for id, m := range p.mu.members {
		isMember := slices.ContainsFunc(peers, func(peer Peer) bool { return peer.RaftID == id })
		var kind ChangeKind
		switch {
		case !leads || !isMember:
			kind = m.behind.forget()
		case p.answersLocked(now, m):
			kind = m.behind.observe(now, m.lag)
		}
		if kind != 0 {
			changes = append(changes, Change{Kind: kind, View: p.mu.view, RaftID: id, Lag: m.lag})
		}
	}
	return changes
}

func (p *Prober) report(c Change) {
	log := p.config.Logger
	switch c.Kind {
	case QuorumLost:
		log.Error("quorum lost", "state", c.View.State.String(), "count", len(c.View.Reached))
	case QuorumRestored:
		log.Info("quorum restored", "count", len(c.View.Reached))
	case FollowerLagging:
		log.Warn("follower lagging", "node", c.RaftID, "count", c.Lag)
	case FollowerCaughtUp:
		log.Info("follower lags no more", "node", c.RaftID, "count", c.Lag)
	}
	if p.config.OnChange != nil {
		p.config.OnChange(c)
	}
}
