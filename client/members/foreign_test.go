package members_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorlease/quorlease/client/clienttest"
	"github.com/quorlease/quorlease/client/members"
)

const foreignID = "ffffffffffffffffffffffffffffffff"

// TestTwoClustersAreNotOne: an endpoint of another cluster is not asked, whatever
// happens to those that are.
func TestTwoClustersAreNotOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, err := clienttest.New(3)
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		foreign, err := clienttest.New(1)
		if err != nil {
			t.Fatal(err)
		}
		defer foreign.Close()
		foreign.SetClusterID(foreignID)
		foreign.Advertise(0, "other.test:7101")
		foreign.Down()

		config := members.DefaultConfig()
		config.Endpoints = append([]string{"other.test:7101"}, ours.Endpoints()...)
		config.Client, config.SessionID = "c", "00112233445566778899aabbccddeeff"
		config.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "other") {
				return foreign.Dial(ctx, foreign.Endpoints()[0])
			}
			return ours.Dial(ctx, address)
		}
		m, err := members.New(config)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		pass(time.Second)
		if err := foreign.Up(); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		if s := m.State(); s.Reached != 3 || s.Reach != members.Led {
			t.Errorf("state %+v", s)
		}
		if n := m.Nodes()[0]; n.Reached || n.Err == nil || !strings.Contains(n.Err.Error(), foreignID) {
			t.Errorf("the foreign node: %+v", n)
		}
		ours.Down()
		pass(5 * time.Second)
		if s := m.State(); s.Reach != members.Unreachable {
			t.Errorf("all of ours are away, and a foreign one is there: %+v", s)
		}
	})
}

// TestClusterMadeAnew: one that was lost and made anew at the same addresses is
// found, once nobody of the old one is left.
func TestClusterMadeAnew(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, w *world) {
		w.settle(t)
		w.Down()
		pass(3 * time.Second)
		w.SetClusterID(foreignID)
		if err := w.Up(); err != nil {
			t.Fatal(err)
		}
		w.await(t, 10*time.Second, func(s members.State) bool { return s.Reached == 3 && s.Reach == members.Led })
	})
}
