package form

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/identity"
)

func never() bool { return false }

// finish brings every node up and lets them go on until all belong to one
// cluster, or fails.
func (w *world) finish() error {
	w.crash = func(*simulated, string) bool { return false }
	for range 20 {
		all := true
		for _, n := range w.nodes {
			if n.former == nil {
				n.start()
			}
			if err := w.round(n); err != nil {
				return err
			}
			if err := w.check(); err != nil {
				return err
			}
			all = all && n.done
		}
		if all {
			break
		}
	}
	for _, n := range w.nodes {
		if !n.record.Formed {
			return fmt.Errorf("%s has state and its disk does not say so", n.record.RaftID())
		}
		if !n.done || n.record.ClusterID != w.nodes[0].record.ClusterID || len(w.clusters) != 1 {
			return fmt.Errorf("%s: done %v, cluster %q of %v", n.record.RaftID(), n.done, n.record.ClusterID, w.clusters)
		}
	}
	return nil
}

func TestFormsOnce(t *testing.T) {
	t.Parallel()
	t.Run("R36_random_schedules_and_crashes", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			w := newWorld(rapid.SampledFrom([]int{1, 2, 3, 5}).Draw(t, "nodes"))
			w.silence = rapid.IntRange(0, 5).Draw(t, "silence")
			w.crash = func(*simulated, string) bool { return rapid.IntRange(0, 5).Draw(t, "crash") == 0 }
			for range rapid.IntRange(0, 60).Draw(t, "steps") {
				n := rapid.SampledFrom(w.nodes).Draw(t, "node")
				switch {
				case n.former == nil:
					n.start()
				case rapid.IntRange(0, 9).Draw(t, "kill") == 0:
					n.stop()
				default:
					if err := w.round(n); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.check(); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.finish(); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("R36_a_crash_at_every_step", func(t *testing.T) {
		t.Parallel()
		// The n-th chance to crash is taken, for every n that there is.
		seen := make(map[string]bool)
		for at := 0; ; at++ {
			w, chance, taken := newWorld(3), 0, false
			w.crash = func(_ *simulated, step string) bool {
				chance++
				taken = taken || chance == at+1
				seen[step] = true
				return chance == at+1
			}
			for _, n := range w.nodes {
				n.start()
			}
			for i := range 12 {
				if err := w.round(w.nodes[i%3]); err != nil {
					t.Fatalf("crash at chance %d: %v", at, err)
				}
			}
			if err := w.finish(); err != nil {
				t.Fatalf("crash at chance %d: %v", at, err)
			}
			if !taken {
				break
			}
		}
		if len(seen) < 9 {
			t.Errorf("crashed at %d different steps, want 9 or more: %v", len(seen), seen)
		}
	})
}

func TestFormsInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(3)
				results := make(chan Outcome, 3)
				for _, i := range order {
					n := w.nodes[i]
					w.mu.Lock()
					n.start()
					w.mu.Unlock()
					go func() {
						o, err := n.former.Run(t.Context())
						if err != nil {
							t.Errorf("%s: %v", n.record.RaftID(), err)
						}
						results <- o
					}()
					<-time.After(time.Duration(rand.IntN(2000)) * time.Millisecond)
				}
				first := <-results
				second, third := <-results, <-results
				if first.ClusterID == "" || first.ClusterID != second.ClusterID || first.ClusterID != third.ClusterID {
					t.Errorf("clusters %q, %q, %q, want one", first.ClusterID, second.ClusterID, third.ClusterID)
				}
				if w.drawn != 1 {
					t.Errorf("%d cluster ids drawn, want 1", w.drawn)
				}
			})
		})
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("a_node_alone_forms_at_once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(1)
		w.nodes[0].start()
		o, err := w.nodes[0].former.Run(t.Context())
		if err != nil || o.ClusterID == "" || !o.Bootstrapped {
			t.Errorf("got %v, %v, want a cluster that it bootstrapped", o, err)
		}
	})
	t.Run("R37_an_empty_directory_under_a_known_name", func(t *testing.T) {
		t.Parallel()
		w := newWorld(3)
		if err := w.finish(); err != nil {
			t.Fatal(err)
		}
		n := w.nodes[1]
		n.record, n.hasState = identity.Record{Name: "n2", Incarnation: "deadbeef"}, false
		n.start()
		_, err := n.former.Run(t.Context())
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "n2 is a member of cluster") {
			t.Errorf("got %v, want refused: n2 is a member with another data directory", err)
		}
		if n.record.ClusterID != "" {
			t.Errorf("refused, but the disk says cluster %s", n.record.ClusterID)
		}
	})
	t.Run("R36_a_plan_keeps_its_id_over_a_restart", func(t *testing.T) {
		t.Parallel()
		w := newWorld(3)
		w.crash = func(_ *simulated, step string) bool { return step == "after write of promise" }
		for range 3 {
			for _, n := range w.nodes {
				if n.former == nil {
					n.start()
				}
				if err := w.round(n); err != nil {
					t.Fatal(err)
				}
			}
		}
		planned := w.nodes[0].record.ClusterID
		if planned == "" {
			t.Fatal("nothing was planned")
		}
		if err := w.finish(); err != nil {
			t.Fatal(err)
		}
		if got := w.nodes[2].record.ClusterID; got != planned {
			t.Errorf("formed %s, the plan on disk was %s", got, planned)
		}
	})
	t.Run("the_context_ends_it", func(t *testing.T) {
		t.Parallel()
		w := newWorld(3)
		w.nodes[0].start()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.nodes[0].former.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
	})
}

func TestPromise(t *testing.T) {
	t.Parallel()
	plan := func(clusterID string, change func(*peerv1.PromiseRequest)) *peerv1.PromiseRequest {
		r := &peerv1.PromiseRequest{ClusterId: clusterID}
		for _, m := range three() {
			r.Members = append(r.Members, &peerv1.Member{RaftId: m.RaftID, Peer: m.Peer})
		}
		if change != nil {
			change(r)
		}
		return r
	}
	cases := []struct {
		name   string
		before *peerv1.PromiseRequest
		req    *peerv1.PromiseRequest
		reason string
	}{
		{"an_empty_node_promises", nil, plan(clusterX, nil), ""},
		{"R36_again_and_again", plan(clusterX, nil), plan(clusterX, nil), ""},
		{"R36_never_another", plan(clusterX, nil), plan(clusterY, nil), "another cluster"},
		{"nor_other_members", plan(clusterX, nil), plan(clusterX, func(r *peerv1.PromiseRequest) {
			r.Members[0].RaftId = "n0.00000000"
		}), "other members"},
		{"not_among_the_members", nil, plan(clusterX, func(r *peerv1.PromiseRequest) {
			r.Members[1] = &peerv1.Member{RaftId: "n2.99999999", Peer: "n2:7201"}
		}), "is not among the members"},
		{"at_another_address", nil, plan(clusterX, func(r *peerv1.PromiseRequest) { r.Members[1].Peer = "x:1" }), "at x:1"},
		{"another_number", nil, plan(clusterX, func(r *peerv1.PromiseRequest) { r.Members = r.Members[:2] }), "2 members"},
		{"no_cluster_id", nil, plan("", nil), "32 lower-case hex digits"},
		{"nothing", nil, &peerv1.PromiseRequest{}, "0 members"},
		{"out_of_order", nil, plan(clusterX, func(r *peerv1.PromiseRequest) { slices.Reverse(r.Members) }), "not in order"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, err := identity.Open(t.TempDir(), "n2")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = dir.Close() })
			for _, r := range []*peerv1.PromiseRequest{c.before, c.req} {
				for _, m := range r.GetMembers() {
					if m.GetRaftId() == n2 {
						m.RaftId = dir.RaftID()
					}
				}
			}
			f, err := New(Config{
				Identity: dir, Peer: addrOf(n2), HasState: never, Expect: 3, Join: []string{addrOf(n1)},
			})
			if err != nil {
				t.Fatal(err)
			}
			if c.before != nil && !f.Promise(c.before).GetAccepted() {
				t.Fatal("the first promise was refused")
			}
			resp := f.Promise(c.req)
			if resp.GetAccepted() != (c.reason == "") || !strings.Contains(resp.GetReason(), c.reason) {
				t.Errorf("got accepted %v, reason %q, want reason with %q", resp.GetAccepted(), resp.GetReason(), c.reason)
			}
		})
	}
}

func TestPromiseOfAnotherNodeIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(1)
	n := w.nodes[0]
	members := []identity.Member{{RaftID: n.record.RaftID(), Peer: n.addr}, {RaftID: n2, Peer: addrOf(n2)}}
	for _, answers := range []*peerv1.PeerInfo{
		{RaftId: n3, ClusterId: clusterX}, {RaftId: n2}, {RaftId: n2, ClusterId: clusterY},
	} {
		f, err := New(Config{
			Identity: (*memory)(n), Peer: n.addr, HasState: never, Expect: 2, Join: []string{addrOf(n2)},
			Probe: func(context.Context, string) (*peerv1.PeerInfo, error) { return answers, nil },
			Promise: func(context.Context, string, *peerv1.PromiseRequest) (*peerv1.PromiseResponse, error) {
				return &peerv1.PromiseResponse{Accepted: true}, nil
			},
			Bootstrap: func(context.Context, string, []identity.Member) error {
				t.Errorf("bootstrapped although %v answers at the address of %s", answers, n2)
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, done, err := f.bootstrap(t.Context(), decision{clusterID: clusterX, members: members})
		if done || err != nil {
			t.Errorf("got done %v, %v, want another round", done, err)
		}
	}
}

func TestPromiseWithStateIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	n := w.nodes[1]
	n.hasState = true
	n.start()
	resp := n.former.Promise(&peerv1.PromiseRequest{ClusterId: clusterX})
	if resp.GetAccepted() || !strings.Contains(resp.GetReason(), "has Raft state") {
		t.Errorf("got %v, want refused: it has Raft state", resp)
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	n := w.nodes[0]
	_, err := New(Config{Identity: (*memory)(n), Peer: n.addr, HasState: never, Expect: 3})
	if err == nil || !strings.Contains(err.Error(), "--join") {
		t.Errorf("got %v, want an error that names --join", err)
	}
}
