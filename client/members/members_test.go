package members_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/client/members"
	"github.com/quorlease/quorlease/client/session"
)

// Any one node is enough to find the others.
func TestMembersAreLearnt(t *testing.T) {
	bubble(t, 1, func(c *clienttest.Cluster) { c.SetLeader(2) }, func(t *testing.T, w *world) {
		w.settle(t)
		var all []string
		for _, e := range w.members.All() {
			all = append(all, e.ID+"="+e.Address)
		}
		if got := strings.Join(all, " "); got != "n1=n1.test:7101 n2=n2.test:7101 n3=n3.test:7101" {
			t.Errorf("known: %s", got)
		}
		if e, err := w.ask(t, time.Second); err != nil || e.ID != "n3" {
			t.Errorf("asked %v: %v", e, err)
		}
		for _, n := range w.members.Nodes() {
			if !n.Reached || n.Err != nil || n.Leader != (n.ID == "n3") || n.Configured != (n.ID == "n1") {
				t.Errorf("node %+v", n)
			}
		}
	})
}

// The leader hint orders nodes; without it they serve all the same.
func TestLeaderIsAHint(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, w *world) {
		w.settle(t)
		w.SetLeader(1)
		w.await(t, 6*time.Second, func(s members.State) bool { return s.Leader.ID == "n2" })
		if e, err := w.ask(t, time.Second); err != nil || e.ID != "n2" {
			t.Errorf("asked %v: %v", e, err)
		}
		w.NoLeader()
		w.await(t, 6*time.Second, func(s members.State) bool { return s.Reach == members.Leaderless })
		if _, err := w.ask(t, time.Second); session.Reason(err) != "NO_LEADER" {
			t.Errorf("an election: %v", err)
		}
		w.Serve()
		w.await(t, 600*time.Millisecond, func(s members.State) bool { return s.Reach == members.Led })
	})
}

// A node that is cut off from a majority comes after those that are not.
func TestNodesWithoutALeaderComeLast(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, w *world) {
		w.settle(t)
		w.NoQuorum(0)
		if e, err := w.ask(t, time.Second); e.ID != "n1" || session.Reason(err) != "NO_QUORUM" {
			t.Errorf("asked %v: %v", e, err)
		}
		for range 200 {
			if e, err := w.ask(t, time.Second); e.ID == "n1" || err != nil {
				t.Fatalf("asked %v: %v", e, err)
			}
			pass(50 * time.Millisecond)
		}
	})
}

// So it is where the leader can't be reached from here either.
func TestNodesWithoutALeaderComeLastUnderAnyLeader(t *testing.T) {
	bubble(t, 3, func(c *clienttest.Cluster) {
		c.NoQuorum(0)
		c.Advertise(1, "10.0.0.1:7101")
	}, func(t *testing.T, w *world) {
		w.await(t, time.Second, func(s members.State) bool { return s.Reached == 3 && s.Leader.ID == "n2" })
		if e, err := w.ask(t, time.Second); err != nil || e.Address == "n1.test:7101" {
			t.Errorf("asked %v: %v", e, err)
		}
	})
}

// Addresses that the cluster tells of and that lead nowhere from here displace
// none that do; what was configured is never forgotten.
func TestSeedsStay(t *testing.T) {
	wrong := []string{"10.0.0.1:7101", "10.0.0.2:7101", "not an address"}
	bubble(t, 2, func(c *clienttest.Cluster) {
		for i, address := range wrong {
			c.Advertise(i, address)
		}
	}, func(t *testing.T, w *world) {
		for range 100 {
			if e, err := w.ask(t, time.Second); err != nil || e.Address == wrong[0] || e.Address == wrong[1] {
				t.Fatalf("asked %v: %v", e, err)
			}
			pass(100 * time.Millisecond)
		}
		if all := w.members.All(); len(all) != 4 {
			t.Errorf("known: %v", all)
		}
		w.Down(0, 1)
		w.await(t, time.Second, func(s members.State) bool { return s.Reach == members.Unreachable })
		if err := w.Up(0, 1); err != nil {
			t.Fatal(err)
		}
		w.await(t, 2*time.Second, func(s members.State) bool { return s.Reach == members.Led })
	})
}

// A member that was removed is forgotten, unless it was configured.
func TestRemovedMembersAreForgotten(t *testing.T) {
	bubble(t, 1, nil, func(t *testing.T, w *world) {
		w.settle(t)
		w.Advertise(0, "")
		w.Advertise(2, "")
		w.await(t, 12*time.Second, func(s members.State) bool { return s.Known == 2 })
		if all := w.members.All(); all[0].ID != "n1" || all[1].ID != "n2" {
			t.Errorf("known: %v", all)
		}
		if n := w.Counts(2).Connections; n != 0 {
			t.Errorf("%d connections to it are left", n)
		}
	})
}

// Whoever was told of one node of three finds those that come, and goes on when the one
// it was told of has been removed, and another is lost.
func TestMembersComeAndGo(t *testing.T) {
	bubbleOf(t, 5, 1, func(c *clienttest.Cluster) {
		c.Advertise(3, "")
		c.Advertise(4, "")
	}, func(t *testing.T, w *world) {
		w.settle(t)
		w.Advertise(3, "n4.test:7101")
		w.Advertise(4, "n5.test:7101")
		w.await(t, 12*time.Second, func(s members.State) bool { return s.Reached == 5 && s.Reach == members.Led })
		lost := 0
		goesOn := func(within time.Duration) {
			t.Helper()
			for started := time.Now(); time.Since(started) < within; pass(50 * time.Millisecond) {
				if e, err := w.ask(t, time.Second); err != nil {
					lost++
				} else if e.ID == "n1" {
					t.Fatal("asked n1, which was removed")
				}
			}
		}
		w.SetLeader(3)
		w.Advertise(0, "")
		w.Down(0)
		goesOn(20 * time.Second)
		w.Down(1)
		goesOn(5 * time.Second)
		// The session that broke may have cost the call that found out.
		if lost > 2 {
			t.Errorf("%d calls failed", lost)
		}
		if s := w.members.State(); s.Leader.ID != "n4" || s.Reached != 3 {
			t.Errorf("in the end: %+v", s)
		}
	})
}

// A session that ended is opened again in the background; those who come meanwhile
// wait for it rather than be told that nobody is there.
func TestSessionsAreOpenedAgain(t *testing.T) {
	bubble(t, 1, func(c *clienttest.Cluster) {
		c.Advertise(1, "")
		c.Advertise(2, "")
	}, func(t *testing.T, w *world) {
		if _, err := w.ask(t, time.Second); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		before := w.members.State().Since
		w.Down(0)
		if err := w.Up(0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		started := time.Now()
		if _, err := w.ask(t, time.Second); err != nil || time.Since(started) > 60*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(started), err)
		}
		got := w.reaches()
		if !slices.Equal(got, []members.Reach{members.Led}) || !w.members.State().Since.Equal(before) {
			t.Errorf("told %v, now %+v", got, w.members.State())
		}
	})
}

// A node that closes in an orderly way takes nobody's answer with it.
func TestDrainingNodesAreLeft(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, w *world) {
		w.settle(t)
		w.Drain(0)
		synctest.Wait()
		for range 20 {
			e, err := w.ask(t, time.Second)
			if err != nil && session.MayHaveHappened(err) || err == nil && e.ID == "n1" {
				t.Errorf("asked %v: %v", e, err)
			}
			pass(10 * time.Millisecond)
		}
		if err := w.Up(0); err != nil {
			t.Fatal(err)
		}
		w.settle(t)
		if e, err := w.ask(t, time.Second); err != nil || e.ID != "n1" {
			t.Errorf("asked %v: %v", e, err)
		}
	})
}

func TestClose(t *testing.T) {
	bubble(t, 3, func(c *clienttest.Cluster) { c.Freeze() }, func(t *testing.T, w *world) {
		var joined sync.WaitGroup
		joined.Go(func() {
			if _, _, err := w.members.Session(t.Context()); !errors.Is(err, members.ErrClosed) {
				t.Errorf("who waited: %v", err)
			}
		})
		synctest.Wait()
		if err := errors.Join(w.members.Close(), w.members.Close()); err != nil {
			t.Error(err)
		}
		joined.Wait()
		if _, _, err := w.members.Session(t.Context()); !errors.Is(err, members.ErrClosed) {
			t.Errorf("afterwards: %v", err)
		}
		if n := w.Counts().Connections; n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	valid := members.DefaultConfig()
	valid.Endpoints, valid.SessionID = []string{"a:1"}, strings.Repeat("0", 32)
	if err := valid.Validate(); err != nil {
		t.Errorf("valid: %v", err)
	}
	for want, change := range map[string]func(*members.Config){
		"endpoints: 0 addresses":        func(c *members.Config) { c.Endpoints = nil },
		"endpoints: 33 addresses":       func(c *members.Config) { c.Endpoints = slices.Repeat(c.Endpoints, 33) },
		`endpoints[1]: "b" must be`:     func(c *members.Config) { c.Endpoints = []string{"a:1", "b"} },
		"has 302 bytes, more than 256":  func(c *members.Config) { c.Endpoints[0] = strings.Repeat("a", 300) + ":1" },
		`session id: "ABC"`:             func(c *members.Config) { c.SessionID = "ABC" },
		"client: has 257 bytes":         func(c *members.Config) { c.Client = strings.Repeat("c", 257) },
		`client: "\n" must be`:          func(c *members.Config) { c.Client = "\n" },
		"connect max: 0s must be":       func(c *members.Config) { c.ConnectMax = 0 },
		"probe soon: -1ns must be":      func(c *members.Config) { c.ProbeSoon = -1 },
		"backoff max: 1ns is less than": func(c *members.Config) { c.BackoffMax = 1 },
	} {
		config := valid
		config.Endpoints = slices.Clone(valid.Endpoints)
		change(&config)
		if _, err := members.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
