package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
)

// bubble is a cluster whose Raft is a variable.
type bubble struct {
	mu sync.Mutex
	// cut are the pairs "from>to" whose questions get no answer.
	cut map[string]bool
	// leader as each node knows it.
	leader map[string]string
	// last and applied indices.
	last, applied map[string]uint64
	probers       map[string]*Prober
	changes       []string
	start         time.Time
}

func newBubble(t *testing.T, ids ...string) *bubble {
	t.Helper()
	b := &bubble{
		cut: make(map[string]bool), leader: make(map[string]string), probers: make(map[string]*Prober),
		last: make(map[string]uint64), applied: make(map[string]uint64), start: time.Now(),
	}
	var peers []Peer
	for _, id := range ids {
		peers = append(peers, Peer{RaftID: id, Addr: "to-" + id, Voter: true})
	}
	for _, id := range ids {
		b.probers[id] = New(Config{
			Self:   func() *peerv1.PeerInfo { return b.info(id) },
			Peers:  func() []Peer { return peers },
			Leader: func() Leader { return b.leaderOf(id) },
			Ask: func(ctx context.Context, addr string, _ *peerv1.PeerInfo) (*peerv1.PeerInfo, error) {
				return b.ask(ctx, id, strings.TrimPrefix(addr, "to-"))
			},
			OnChange: func(c Change) { b.changed(id, c) },
		})
	}
	for _, p := range b.probers {
		p.Start()
		t.Cleanup(p.Close)
	}
	return b
}

func (b *bubble) info(id string) *peerv1.PeerInfo {
	reached := b.probers[id].View().Reached
	b.mu.Lock()
	defer b.mu.Unlock()
	return &peerv1.PeerInfo{
		RaftId: id, Reached: reached, Leader: b.leader[id], LastIndex: b.last[id], AppliedIndex: b.applied[id],
	}
}

func (b *bubble) leaderOf(id string) Leader {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Leader{RaftID: b.leader[id]}
}

func (b *bubble) ask(ctx context.Context, from, to string) (*peerv1.PeerInfo, error) {
	b.mu.Lock()
	cut := b.cut[from+">"+to]
	b.mu.Unlock()
	if cut {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	<-time.After(time.Millisecond)
	return b.info(to), nil
}

func (b *bubble) changed(id string, c Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kinds := map[ChangeKind]string{
		QuorumLost: "lost", QuorumRestored: "restored", FollowerLagging: "lagging " + c.RaftID,
		FollowerCaughtUp: "caught up " + c.RaftID,
	}
	b.changes = append(b.changes, id+" "+kinds[c.Kind])
}

// set changes the world under the lock and lets time pass.
func (b *bubble) set(after time.Duration, change func()) {
	b.mu.Lock()
	change()
	b.mu.Unlock()
	<-time.After(after)
	synctest.Wait()
}

// lead makes everybody know one leader, or none.
func (b *bubble) lead(id string) {
	for other := range b.probers {
		b.leader[other] = id
	}
}

// isolate cuts a node off in both directions.
func (b *bubble) isolate(id string) {
	for other := range b.probers {
		b.cut[id+">"+other], b.cut[other+">"+id] = true, true
	}
}

func (b *bubble) heal() { clear(b.cut) }

// took returns the changes so far, in the order of the nodes, and forgets them.
func (b *bubble) took() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	changes := b.changes
	b.changes = nil
	slices.Sort(changes)
	return strings.Join(changes, ", ")
}

func (b *bubble) states() string {
	var got []string
	for _, id := range []string{"a", "b", "c"} {
		got = append(got, b.probers[id].View().State.String())
	}
	return strings.Join(got, ", ")
}

// bubbled runs a test of three nodes that have a leader.
func bubbled(t *testing.T, name string, test func(t *testing.T, b *bubble)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, "a", "b", "c")
			b.set(time.Second, func() { b.lead("a") })
			if got := b.states(); got != "has leader, has leader, has leader" {
				t.Fatalf("to begin with: %s", got)
			}
			test(t, b)
		})
	})
}

func TestProber(t *testing.T) {
	t.Parallel()
	bubbled(t, "G8_an_ordinary_election_alerts_nobody", func(t *testing.T, b *bubble) {
		b.set(time.Second, func() { b.isolate("a"); b.leader["b"], b.leader["c"] = "", "" })
		if got := b.probers["b"].View().State; got != NoLeader {
			t.Errorf("during the election: got %v, want no leader", got)
		}
		b.set(10*time.Second, func() { b.leader["b"], b.leader["c"] = "b", "b" })
		b.set(10*time.Second, func() { b.heal(); b.leader["a"] = "b" })
		if got := b.took(); got != "a lost, a restored" {
			t.Errorf("got %q, want only the old leader's own isolation", got)
		}
	})
	bubbled(t, "G8_a_lost_quorum_within_a_second_once", func(t *testing.T, b *bubble) {
		b.set(time.Second, func() { b.isolate("a"); b.isolate("b"); b.isolate("c"); b.lead("") })
		if got := b.took(); got != "a lost, b lost, c lost" {
			t.Errorf("after one second: got %q, want every node to say so", got)
		}
		v := b.probers["b"].View()
		if v.State != NoQuorum || !v.Lost || !slices.Equal(v.Reached, []string{"b"}) || v.Voters != 3 {
			t.Errorf("view: got %+v, want no quorum with itself alone", v)
		}
		b.set(time.Minute, func() {})
		if got := b.took(); got != "" {
			t.Errorf("in the minute after: got %q, want silence", got)
		}
		b.set(2*time.Second, func() { b.heal() })
		if got := b.took(); got != "" {
			t.Errorf("a majority without a leader: got %q, want silence", got)
		}
		b.set(time.Second, func() { b.lead("c") })
		if got := b.took(); got != "a restored, b restored, c restored" {
			t.Errorf("with a leader again: got %q", got)
		}
	})
	bubbled(t, "G8_no_leader_for_more_than_three_seconds", func(t *testing.T, b *bubble) {
		b.set(2900*time.Millisecond, func() { b.lead("") })
		if got := b.took(); got != "" {
			t.Errorf("within three seconds: got %q, want silence", got)
		}
		b.set(500*time.Millisecond, func() {})
		if got := b.took(); got != "a lost, b lost, c lost" {
			t.Errorf("after three seconds: got %q", got)
		}
	})
	bubbled(t, "a_peer_that_hangs_is_not_asked_without_end", func(t *testing.T, b *bubble) {
		b.set(10*time.Second, func() { b.isolate("c") })
		p := b.probers["a"]
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := p.mu.underWay["to-c"]; n > 5 {
			t.Errorf("%d questions under way to one peer, at most 5", n)
		}
	})
}

func TestProberStart(t *testing.T) {
	t.Parallel()
	t.Run("G8_a_node_that_saw_no_quorum_says_nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBubble(t, "a", "b", "c")
			b.set(time.Minute, func() { b.isolate("a") })
			b.set(time.Minute, func() { b.heal() })
			if got := b.took(); got != "" {
				t.Errorf("got %q, want silence", got)
			}
			if got := b.states(); got != "no leader, no leader, no leader" {
				t.Errorf("states: %s", got)
			}
		})
	})
	t.Run("closed_before_it_starts", func(t *testing.T) {
		t.Parallel()
		p := New(Config{})
		p.Close()
		p.Start()
		p.Close()
	})
	t.Run("strangers_take_bounded_room", func(t *testing.T) {
		t.Parallel()
		p := New(Config{})
		for i := range 1000 {
			p.Heard(&peerv1.PeerInfo{RaftId: fmt.Sprint("x", i)})
		}
		if n := len(p.mu.members); n > membersMost {
			t.Errorf("%d members kept, at most %d", n, membersMost)
		}
		if m, ok := p.Member("x0"); !ok || m.Answers {
			t.Errorf("got %+v, %v, want known but not an answer", m, ok)
		}
		if _, ok := p.Member("nobody"); ok {
			t.Error("somebody who never spoke is known")
		}
	})
}

func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	t.Run("G8_a_node_that_wakes_up_alerts_nobody", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var jump time.Duration
			start := time.Now()
			var changes []Change
			peers := []Peer{{RaftID: "a", Addr: "a", Voter: true}, {RaftID: "b", Addr: "b", Voter: true}}
			p := New(Config{
				Self:   func() *peerv1.PeerInfo { return &peerv1.PeerInfo{RaftId: "a"} },
				Peers:  func() []Peer { return peers },
				Leader: func() Leader { return Leader{RaftID: "b", Age: time.Hour} },
				Ask: func(context.Context, string, *peerv1.PeerInfo) (*peerv1.PeerInfo, error) {
					return &peerv1.PeerInfo{RaftId: "b"}, nil
				},
				Now: func() time.Duration {
					mu.Lock()
					defer mu.Unlock()
					return time.Since(start) + jump
				},
				OnChange: func(c Change) { changes = append(changes, c) },
			})
			p.Start()
			defer p.Close()
			<-time.After(10 * time.Second)
			synctest.Wait()
			if s := p.View().State; s != HasLeader {
				t.Fatalf("to begin with: %v", s)
			}
			mu.Lock()
			jump = 30 * time.Second
			mu.Unlock()
			<-time.After(10 * time.Second)
			synctest.Wait()
			if len(changes) != 0 || p.View().State != HasLeader {
				t.Errorf("after 30 s asleep: got %v, state %v, want nothing", changes, p.View().State)
			}
		})
	})
}

func TestLag(t *testing.T) {
	t.Parallel()
	bubbled(t, "R13_a_follower_that_lags_is_named_by_the_leader_once", func(t *testing.T, b *bubble) {
		b.set(time.Second, func() {
			b.last["a"], b.applied["a"], b.applied["b"], b.applied["c"] = 1000, 1000, 751, 750
		})
		for id, want := range map[string]bool{"a": true, "b": true, "c": false} {
			for from, p := range b.probers {
				if got := p.IsHealthy(id); got != want {
					t.Errorf("%s says of %s: healthy %v, want %v", from, id, got, want)
				}
			}
		}
		b.set(time.Minute, func() {})
		if got := b.took(); got != "a lagging c" {
			t.Errorf("got %q, want a to name c once", got)
		}
		b.set(time.Second, func() { b.applied["c"] = 1000 })
		if got := b.took(); got != "a caught up c" {
			t.Errorf("got %q, want a to take it back once", got)
		}
		b.set(time.Second, func() { b.isolate("c") })
		if p := b.probers["a"]; p.IsHealthy("c") || !p.IsHealthy("b") || p.IsHealthy("nobody") {
			t.Error("healthy must be b and not c, which is cut off")
		}
		if m, ok := b.probers["a"].Member("c"); !ok || m.Answers || m.Lag != 0 || m.Said.GetRaftId() != "c" {
			t.Errorf("of c: got %+v, %v", m, ok)
		}
	})
	bubbled(t, "R13_a_leader_that_leads_no_more_takes_it_back", func(t *testing.T, b *bubble) {
		b.set(time.Minute, func() { b.last["a"], b.applied["a"], b.applied["b"] = 1000, 1000, 1000 })
		if got := b.took(); got != "a lagging c" {
			t.Errorf("got %q, want a to name c once", got)
		}
		b.set(time.Minute, func() {
			b.lead("b")
			b.last["b"] = 1000
		})
		if got := b.took(); got != "a caught up c, b lagging c" {
			t.Errorf("got %q, want a to take it back and b to name c", got)
		}
	})
	bubbled(t, "R13_a_follower_that_is_gone_does_not_lag", func(t *testing.T, b *bubble) {
		b.set(time.Second, func() { b.last["a"], b.applied["a"], b.applied["b"] = 1000, 1000, 1000 })
		b.set(time.Minute, func() { b.isolate("c") })
		if got := b.took(); got != "" {
			t.Errorf("got %q, want silence", got)
		}
	})
	bubbled(t, "the_age_of_an_answer_is_no_lag", func(t *testing.T, b *bubble) {
		// 10,000 entries a second, all applied at once everywhere.
		for i := range uint64(200) {
			b.set(10*time.Millisecond, func() {
				for _, id := range []string{"a", "b", "c"} {
					b.last[id], b.applied[id] = i*100, i*100
				}
			})
			if p := b.probers["a"]; !p.IsHealthy("b") || !p.IsHealthy("c") {
				t.Fatalf("step %d: a follower that keeps up is unhealthy", i)
			}
		}
	})
}

func TestErrorsAreNoAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{
			Self:   func() *peerv1.PeerInfo { return &peerv1.PeerInfo{RaftId: "a"} },
			Peers:  func() []Peer { return []Peer{{RaftID: "a", Voter: true}, {RaftID: "b", Addr: "b", Voter: true}} },
			Leader: func() Leader { return Leader{} },
			Ask: func(context.Context, string, *peerv1.PeerInfo) (*peerv1.PeerInfo, error) {
				return &peerv1.PeerInfo{RaftId: "b"}, errors.New("refused")
			},
		})
		p.Start()
		defer p.Close()
		<-time.After(time.Second)
		synctest.Wait()
		if v := p.View(); v.State != NoQuorum || len(v.Reached) != 1 {
			t.Errorf("got %+v, want no quorum", v)
		}
	})
}
