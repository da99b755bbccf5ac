package sim

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/bench/sim/quorum"
	"github.com/quorlease/quorlease/bench/sim/rules"
	"github.com/quorlease/quorlease/bench/sim/stage"
	"github.com/quorlease/quorlease/bench/sim/trap"
)

// weather chooses what goes wrong in this run, and for how long.
func (w *World) weather() time.Duration {
	s := w.stage
	w.network.Delay = [2]time.Duration{200 * time.Microsecond, s.Between(time.Millisecond, 40*time.Millisecond)}
	w.network.Late = s.Between(200*time.Millisecond, 3*time.Second)
	w.network.Slow = 10 + s.Rand.IntN(200)
	w.network.Lose = 10 + s.Rand.IntN(300)
	w.network.Repeat = 10 + s.Rand.IntN(100)
	w.stalls = s.Chance(2)
	w.judge.Patient(!w.stalls)
	faults := []func(){
		w.transfer, w.relay, w.crash, w.crashAll, w.sleepNode, w.sleepClients, w.isolate, w.split, w.loseQuorum,
		w.cutClient, w.change,
	}
	// Each run has a few kinds of faults, so that the rare ones meet.
	s.Rand.Shuffle(len(faults), func(i, k int) { faults[i], faults[k] = faults[k], faults[i] })
	kinds := faults[:2+s.Rand.IntN(4)]
	if those := w.haunts(); those != nil {
		kinds = those
	}
	if s.Chance(2) {
		w.keepChanging()
	}
	every := s.Between(2*time.Second, 6*time.Second)
	if w.trap != trap.None {
		every /= 2
	}
	var next func()
	next = func() {
		s.At(nil, s.Between(every/4, 2*every), next)
		if w.faulty {
			kinds[s.Rand.IntN(len(kinds))]()
		}
	}
	s.At(nil, startFor, next)
	return s.Between(25*time.Second, 50*time.Second)
}

// haunts are the faults that show a mistake which others seldom do, nil for any.
func (w *World) haunts() []func() {
	return map[trap.Kind][]func(){
		trap.LargerEstimateDrift: {w.transfer}, trap.NodeSleeps: {w.sleepNode}, trap.OldStamp: {w.relay},
		trap.ForgottenWhenSent: {w.transfer, w.isolate, w.loseQuorum},
	}[w.trap]
}

// heal ends all faults.
func (w *World) heal() {
	w.stage.Trace("no more faults")
	w.faulty, w.stalls = false, false
	w.network.Heal()
	for _, n := range w.present {
		w.restart(n)
	}
}

func (w *World) restart(n *node) {
	if n.host.Dead() && slices.Contains(w.present, n) {
		w.stats.Restarts++
		w.stage.Trace("%s starts", n.host.Name)
		n.host.Start()
		n.start()
	}
}

func (w *World) anyNode() *node { return w.present[w.stage.Rand.IntN(len(w.present))] }

// leader is a node that leads, or any.
func (w *World) leader() *node {
	for _, n := range w.present {
		if n.host.Runs() && n.member.Role() == quorum.Leader {
			return n
		}
	}
	return w.anyNode()
}

// victim is the leader half of the time.
func (w *World) victim() *node {
	if w.stage.Chance(2) {
		return w.leader()
	}
	return w.anyNode()
}

// transfer lets another node stand for election at once.
func (w *World) transfer() {
	if n := w.anyNode(); n.host.Runs() {
		n.member.Campaign()
	}
}

// relay lets a leader hang over a batch that it has stamped, another lead
// meanwhile, and the first again when the batch comes through (T4).
func (w *World) relay() {
	first, second := w.leader(), w.anyNode()
	d := w.stage.Between(2*time.Second, 5*time.Second)
	w.stage.Trace("%s is to hang for %v, %s to lead meanwhile", first.host.Name, d, second.host.Name)
	first.hang = d
	w.judge.Hung()
	stand := func(n *node) func() {
		return func() {
			if n.host.Runs() {
				n.member.Campaign()
			}
		}
	}
	w.stage.At(nil, w.stage.Between(d/8, d/4), stand(second))
	w.stage.At(nil, w.stage.Between(d/2, d-d/8), stand(first))
}

func (w *World) crash() { w.kill(w.victim(), w.stage.Between(200*time.Millisecond, 6*time.Second)) }

// crashAll ends a majority, or everybody.
func (w *World) crashAll() {
	least := len(w.present)/2 + 1
	for _, i := range w.stage.Rand.Perm(len(w.present))[:least+w.stage.Rand.IntN(len(w.present)-least+1)] {
		w.kill(w.present[i], w.stage.Between(time.Second, 6*time.Second))
	}
}

func (w *World) kill(n *node, d time.Duration) {
	if n.host.Dead() {
		return
	}
	w.stats.Crashes++
	w.stage.Trace("%s is killed", n.host.Name)
	n.host.Kill()
	w.judge.Restarted(w.stage.Real())
	w.stage.At(nil, d, func() { w.restart(n) })
}

func (w *World) suspend(h *stage.Host, d time.Duration) {
	stops := w.stage.Chance(2)
	w.stats.Suspensions++
	w.stage.Trace("%s is suspended for %v, its clock stops: %v", h.Name, d, stops)
	h.Suspend(d, stops)
}

// sleepNode suspends a node, often for less time than it takes to be replaced.
func (w *World) sleepNode() {
	d := w.stage.Between(50*time.Millisecond, 600*time.Millisecond)
	if w.stage.Chance(2) {
		d = w.stage.Between(500*time.Millisecond, 6*time.Second)
	}
	w.suspend(w.victim().host, d)
}

// sleepClients suspends some clients and wakes them together.
func (w *World) sleepClients() {
	d := w.stage.Between(500*time.Millisecond, 8*time.Second)
	for _, c := range w.clients {
		if w.stage.Chance(2) {
			w.suspend(c.host, d)
		}
	}
	if len(w.holders) > 0 && w.stage.Chance(2) {
		w.suspend(w.holders[0].Host, d)
	}
}

func (w *World) everybody() []*stage.Host {
	var all []*stage.Host
	for _, n := range w.present {
		all = append(all, n.host)
	}
	for _, c := range w.clients {
		all = append(all, c.host)
	}
	for _, h := range w.holders {
		all = append(all, h.Host)
	}
	return all
}

func (w *World) cut(from, to []*stage.Host, d time.Duration) {
	w.stats.Cuts++
	names := ""
	for _, h := range from {
		names += " " + h.Name
	}
	w.stage.Trace("%v:%s cut off", d, names)
	w.network.Cut(from, to, d)
}

// isolate separates one node from the other nodes, and perhaps from the clients.
func (w *World) isolate() {
	all := w.everybody()
	if w.stage.Chance(2) {
		all = all[:len(w.present)]
	}
	w.cut([]*stage.Host{w.victim().host}, all, w.stage.Between(500*time.Millisecond, 8*time.Second))
}

// split separates two groups of nodes; clients reach both.
func (w *World) split() {
	var one, other []*stage.Host
	for _, n := range w.present {
		if w.stage.Chance(2) {
			one = append(one, n.host)
		} else {
			other = append(other, n.host)
		}
	}
	w.cut(one, other, w.stage.Between(500*time.Millisecond, 6*time.Second))
}

// loseQuorum separates every node from every other.
func (w *World) loseQuorum() {
	w.stats.Losses++
	d := w.stage.Between(3*time.Second, 12*time.Second)
	for i, n := range w.present {
		for _, other := range w.present[i+1:] {
			w.cut([]*stage.Host{n.host}, []*stage.Host{other.host}, d)
		}
	}
}

// cutClient separates one client from all nodes.
func (w *World) cutClient() {
	var all []*stage.Host
	for _, c := range w.clients {
		all = append(all, c.host)
	}
	for _, h := range w.holders {
		all = append(all, h.Host)
	}
	i := w.stage.Rand.IntN(len(all))
	w.cut(all[i:i+1], w.everybody(), w.stage.Between(time.Second, 10*time.Second))
}

// change gives a limit other numbers: what is spent of it is not judged, what is
// debited is. One that is seldom asked for changes several times in a row.
func (w *World) change() {
	if w.stage.Chance(2) {
		w.changeTo(rules.Loose, w.stage.Amount(1, 20), w.stage.Amount(5, 30))
		return
	}
	w.changeInARow()
}

func (w *World) changeInARow() {
	for i := range time.Duration(1 + w.stage.Rand.IntN(4)) {
		w.stage.At(nil, i*w.stage.Between(100*time.Millisecond, 600*time.Millisecond), func() {
			w.changeTo(rules.Rare, w.stage.Amount(1, 4), w.stage.Amount(2, 20))
		})
	}
}

// keepChanging changes the limit that is seldom asked for, now and then, as long as
// there are faults.
func (w *World) keepChanging() {
	w.stage.At(nil, w.stage.Between(2*time.Second, 8*time.Second), func() {
		if w.faulty {
			w.changeInARow()
		}
		w.keepChanging()
	})
}

func (w *World) changeTo(name string, amount, burst int64) {
	limit := proto.CloneOf(w.limit(name))
	d := limit.GetDimensions()[0]
	d.Amount, d.Burst = amount, burst
	w.stage.Trace("limit %s: %d a second, burst %d", name, amount, burst)
	op := &logv1.Operation{Kind: &logv1.Operation_ApplyLimits{ApplyLimits: &logv1.ApplyLimits{
		Limits: []*logv1.Limit{limit},
	}}}
	w.clients[0].persist(op, 5, func(reply) {})
}
