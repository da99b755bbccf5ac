package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	logv1 "github.com/quorlease/quorlease/api/quorlease/log/v1"
	"github.com/quorlease/quorlease/cluster"
	"github.com/quorlease/quorlease/cluster/clustertest"
	"github.com/quorlease/quorlease/cluster/disk"
	"github.com/quorlease/quorlease/cluster/entry"
	"github.com/quorlease/quorlease/fsm"
)

// One node, one acquire, through the door, the log, the disk and the state
// machine, and back.
func TestOneAcquire(t *testing.T) {
	t.Parallel()
	c := clustertest.New(t, 1, clustertest.Options{})
	c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 1))
	if r := c.Decide("a", clustertest.Acquire("gpt", 1)); !r.GetGranted() {
		t.Fatalf("got %v, want a grant", r)
	}
	r := c.Decide("a", clustertest.Acquire("gpt", 1))
	if r.GetGranted() || len(r.GetDenials()) != 1 || r.GetDenials()[0].GetReason() != logv1.Reason_REASON_RATE {
		t.Fatalf("got %v, want a denial for the rate", r)
	}
	_, err := c.Node("a").Acquire(t.Context(), clustertest.Acquire("other", 1), 0)
	var refused *fsm.Refused
	if !errors.As(err, &refused) || refused.GetCause() != logv1.Refusal_CAUSE_LIMIT_NOT_FOUND {
		t.Fatalf("got %v, want limit not found", err)
	}
}

// An index of one term is not confirmed by leading in another: somebody else may have
// led in between.
func TestR6ReadsAreOfOneTerm(t *testing.T) {
	t.Parallel()
	c := clustertest.New(t, 1, clustertest.Options{})
	c.Leader()
	n := c.Node("a")
	term := n.Status().Term
	if err := n.VerifyLeads(term); err != nil {
		t.Errorf("in its own term: %v", err)
	}
	if err := n.VerifyLeads(term - 1); err == nil {
		t.Error("an index of the term before was confirmed")
	}
}

// What was answered is there after a restart.
func TestRestartKeepsEverything(t *testing.T) {
	t.Parallel()
	c := clustertest.New(t, 1, clustertest.Options{})
	c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 20))
	lease := clustertest.Track("gpt", 3)
	c.Decide("a", lease)
	for range 10 {
		c.Decide("a", clustertest.Acquire("gpt", 1))
	}
	before := c.Node("a").Status()
	c.Stop("a")
	c.Restart("a")
	c.Leader()
	if again := c.Decide("a", lease); !again.GetGranted() || !again.GetRepeated() {
		t.Fatalf("the lease is gone: %v", again)
	}
	if n := clustertest.Granted(t, c.Node("a"), "gpt"); n != 7 {
		t.Fatalf("%d granted after the restart, want the 7 that were left", n)
	}
	after := c.Node("a").Status()
	if after.ClusterID != before.ClusterID || after.ClusterID == "" {
		t.Fatalf("cluster %q became %q", before.ClusterID, after.ClusterID)
	}
}

func TestR16DataDirectoryInUse(t *testing.T) {
	t.Parallel()
	c := clustertest.New(t, 1, clustertest.Options{})
	config := c.Config("a")
	config.Peer = "127.0.0.1:0"
	_, err := cluster.Open(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), c.Dir("a")) {
		t.Fatalf("got %v, want that %s is in use", err, c.Dir("a"))
	}
}

// A port that is taken is found before there is a data directory.
func TestPeerPortTakenLeavesNoDirectory(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	config := cluster.DefaultConfig()
	config.ID, config.DataDir, config.Peer = "a", filepath.Join(t.TempDir(), "new"), taken.Addr().String()
	config.AdvertiseGRPC, config.AdvertiseHTTP, config.BootstrapExpect = "a:grpc", "a:http", 1
	_, err = cluster.Open(t.Context(), config)
	if want := "listen on --peer " + config.Peer + ": address already in use"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := os.Stat(config.DataDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory: got %v, want none", err)
	}
}

// appendEntry writes an entry behind the log of a node that does not run.
func appendEntry(t *testing.T, dir string, data []byte) {
	t.Helper()
	stores, err := disk.OpenStores(dir, true, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	dog := disk.Watch(disk.Config{OnStall: func(*disk.StallError) {}, OnError: func(err error) { t.Error(err) }})
	defer func() {
		dog.Close()
		_ = stores.Close()
	}()
	logs := dog.LogStore(stores.Log)
	last, err := logs.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	var log raft.Log
	if err := logs.GetLog(last, &log); err != nil {
		t.Fatal(err)
	}
	log.Index, log.Type, log.Data = last+1, raft.LogCommand, data
	if err := logs.StoreLog(&log); err != nil {
		t.Fatal(err)
	}
}

// An entry that a newer program wrote, or that was damaged, stops the node
// rather than let it diverge (G9, R27).
func TestR27UnreadableEntryStopsTheNode(t *testing.T) {
	t.Parallel()
	newer, err := entry.Encode(&logv1.Entry{Stamp: 1})
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), newer...)
	newer[0] = 200
	damaged[len(damaged)-1]++
	for name, entry := range map[string]struct {
		data []byte
		want error
	}{
		"newer": {newer, fsm.ErrNewerVersion}, "damaged": {damaged, fsm.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clustertest.New(t, 1, clustertest.Options{})
			c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 1))
			c.Stop("a")
			appendEntry(t, c.Dir("a"), entry.data)
			n := c.Restart("a")
			select {
			case <-n.Done():
			case <-time.After(20 * time.Second):
				t.Fatal("the node goes on")
			}
			if err := n.Err(); !errors.Is(err, cluster.ErrProtected) || !errors.Is(err, entry.want) {
				t.Fatalf("got %v, want %v and %v", err, cluster.ErrProtected, entry.want)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := n.Acquire(ctx, clustertest.Acquire("gpt", 1), 0); !errors.Is(err, cluster.ErrClosed) {
				t.Fatalf("got %v, want %v", err, cluster.ErrClosed)
			}
		})
	}
}

// snapshotsOf waits for a snapshot of a node, and returns the states of all.
func snapshotsOf(c *clustertest.Cluster, name string) (found []string) {
	c.Eventually("a snapshot", func() error {
		var err error
		found, err = filepath.Glob(filepath.Join(c.Dir(name), "snapshots", "*", "state.bin"))
		if err == nil && (len(found) == 0 || strings.Contains(found[0], ".tmp")) {
			err = errors.New("there is none yet")
		}
		return err
	})
	return found
}

// A node that can't trust what it stored says so, and doesn't conclude from it
// that it was removed or is new.
func TestR17LostOrDamagedDirectory(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(c *clustertest.Cluster) error{
		"its own id in the snapshots": func(c *clustertest.Cluster) error {
			for _, state := range snapshotsOf(c, "a") {
				path := filepath.Join(filepath.Dir(state), "meta.json")
				b, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				bad := bytes.Replace(b, []byte(`"ID":"a.`), []byte(`"ID":"c.`), 1)
				if err := os.WriteFile(path, bad, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		"the log and the snapshots": func(c *clustertest.Cluster) error {
			return errors.Join(os.Remove(filepath.Join(c.Dir("a"), "raft.db")),
				os.RemoveAll(filepath.Join(c.Dir("a"), "snapshots")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubbleOf(t, 1, func(c *cluster.Config) { c.SnapshotBytes = 1 }, func(b bubble) { testDamaged(b, damage) })
		})
	}
}

func testDamaged(b bubble, damage func(*clustertest.Cluster) error) {
	t, c := b.T, b.Cluster
	c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 1))
	snapshotsOf(c, "a")
	c.Stop("a")
	identity := filepath.Join(c.Dir("a"), "identity.json")
	before, err := os.ReadFile(identity)
	if err := errors.Join(err, damage(c)); err != nil {
		t.Fatal(err)
	}
	_, err = cluster.Open(t.Context(), c.Config("a"))
	if !errors.Is(err, cluster.ErrProtected) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line: %v", err, cluster.ErrProtected)
	}
	after, err := os.ReadFile(identity)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the identity became %s, %v", after, err)
	}
}

func TestR23SnapshotsAreTight(t *testing.T) {
	t.Parallel()
	inBubbleOf(t, 1, func(c *cluster.Config) { c.SnapshotBytes = 1 }, func(b bubble) {
		t, c := b.T, b.Cluster
		c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 1))
		found := snapshotsOf(c, "a")
		for path := found[0]; path != filepath.Dir(c.Dir("a")); path = filepath.Dir(path) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %04o", path, info.Mode().Perm())
			}
		}
	})
}

// A full disk is answered as such, before anything is written; the node goes on
// leading and ticking (R14).
func TestR14DiskLow(t *testing.T) {
	t.Parallel()
	least := int64(1)
	c := clustertest.New(t, 1, clustertest.Options{Configure: func(_ string, c *cluster.Config) {
		c.MinFreeBytes = least
	}})
	c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 1))
	c.Stop("a")
	least = 1 << 60
	n := c.Restart("a")
	c.Leader()
	before := c.State("a")
	if _, err := n.Acquire(t.Context(), clustertest.Acquire("gpt", 1), 0); !errors.Is(err, cluster.ErrDiskLow) ||
		cluster.MayHaveHappened(err) {
		t.Fatalf("got %v, want %v", err, cluster.ErrDiskLow)
	}
	c.Eventually("a tick", func() error {
		if after := c.State("a"); after.Now <= before.Now {
			return errors.New("time stands still")
		}
		return nil
	})
}

// A disk that hangs or fails ends the process: raft would keep the leadership
// and answer nobody (R12), or go on with half of what it wrote (R14).
func TestR12BadDiskStopsTheNode(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*cluster.Node){
		"hangs": func(n *cluster.Node) { n.DiskStalled(&disk.StallError{Call: "write log"}) },
		"fails": func(n *cluster.Node) { n.DiskFailed(errors.New("write log: input/output error")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := clustertest.New(t, 1, clustertest.Options{}).Node("a")
			fail(n)
			<-n.Done()
			if err := n.Err(); !errors.Is(err, cluster.ErrProtected) || !strings.Contains(err.Error(), "write log") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// Not parallel: raft's sinks are global, and must not see the times of bubbles.
func TestMetricsAreRegistered(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := clustertest.New(t, 1, clustertest.Options{Configure: func(_ string, c *cluster.Config) {
		c.Registerer = registry
	}})
	c.ApplyLimits("a", clustertest.Rate("gpt", 1, time.Hour, 1))
	c.Decide("a", clustertest.Acquire("gpt", 1))
	names := make(map[string]bool)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		names[f.GetName()] = true
	}
	for _, want := range []string{
		"quorlease_decisions_total", "quorlease_decision_seconds", "quorlease_log_entries_total",
		"quorlease_entry_operations", "quorlease_apply_seconds", "quorlease_commit_seconds", "quorlease_has_quorum",
		"quorlease_is_leader", "quorlease_buckets", "quorlease_leases", "quorlease_follower_lag_entries",
		"quorlease_disk_free_bytes", "quorlease_peers_refused_total",
		"quorlease_raft_commitTime", "quorlease_raft_boltdb_storeLogs",
	} {
		if !names[want] {
			t.Errorf("%s is missing", want)
		}
	}
}
