package stage

import "time"

// Network carries messages between hosts.
type Network struct {
	stage *Stage
	// Delay is the least and the most that a message takes; one in Slow takes
	// up to Late. One in Lose is lost, one in Repeat arrives twice. Zero: none.
	Delay              [2]time.Duration
	Late               time.Duration
	Slow, Lose, Repeat int

	cuts []*cut
}

// cut keeps messages between two groups of hosts, in both directions, until it
// ends.
type cut struct {
	from, to []*Host
	until    time.Duration
}

// NewNetwork is one that delivers everything within a millisecond.
func (s *Stage) NewNetwork() *Network {
	return &Network{stage: s, Delay: [2]time.Duration{time.Millisecond / 5, time.Millisecond}}
}

// Send does deliver at the host to, in a while, once, twice or never.
func (n *Network) Send(from, to *Host, deliver func()) {
	if n.separated(from, to) || n.Lose > 0 && n.stage.Chance(n.Lose) {
		return
	}
	n.carry(from, to, deliver)
	if n.Repeat > 0 && n.stage.Chance(n.Repeat) {
		n.carry(from, to, deliver)
	}
}

func (n *Network) carry(from, to *Host, deliver func()) {
	delay := n.stage.Between(n.Delay[0], n.Delay[1])
	if n.Slow > 0 && n.stage.Chance(n.Slow) {
		delay = n.stage.Between(n.Delay[1], n.Late)
	}
	n.stage.plan(delay, event{host: to, do: deliver, from: from, network: n})
}

// Cut separates two groups for d.
func (n *Network) Cut(from, to []*Host, d time.Duration) {
	n.cuts = append(n.cuts, &cut{from: from, to: to, until: n.stage.now + d})
}

// Heal ends all cuts, and nothing is lost, late or repeated any more.
func (n *Network) Heal() {
	n.cuts = nil
	n.Slow, n.Lose, n.Repeat = 0, 0, 0
}

// Separated says whether nothing gets from one host to the other now.
func (n *Network) Separated(a, b *Host) bool { return n.separated(a, b) }

func (n *Network) separated(a, b *Host) bool {
	if len(n.cuts) == 0 || a == b {
		return false
	}
	kept := n.cuts[:0]
	apart := false
	for _, c := range n.cuts {
		if c.until <= n.stage.now {
			continue
		}
		kept = append(kept, c)
		apart = apart || has(c.from, a) && has(c.to, b) || has(c.from, b) && has(c.to, a)
	}
	n.cuts = kept
	return apart
}

func has(hosts []*Host, host *Host) bool {
	for _, h := range hosts {
		if h == host {
			return true
		}
	}
	return false
}
