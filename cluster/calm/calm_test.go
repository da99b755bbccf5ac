package calm_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorlease/quorlease/cluster/calm"
)

// server is a name, of a type of its own as in raft.
type server string

func TestR43OnlyWhatSomebodyHasToRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := calm.New(hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: &out}))
		lines := func() int {
			n := strings.Count(out.String(), "\n")
			out.Reset()
			return n
		}
		log.Info("entering follower state")
		log.Named("x").Debug("votes needed")
		log.Log(hclog.Info, "snapshot complete")
		log.Trace("tick")
		if n := lines(); n != 0 {
			t.Errorf("%d lines below warn", n)
		}
		const election = "heartbeat timeout reached, starting election"
		log.Warn("no known peers, aborting election")
		log.Warn("failed to get previous log", "previous-index", 1, "error", io.EOF)
		log.Warn("appendEntries rejected, sending older logs", "next", 1)
		log.Warn(election, "last-leader-addr", "", "last-leader-id", server(""))
		if n := lines(); n != 0 {
			t.Errorf("%d lines of what every start has", n)
		}
		log.Warn(election, "last-leader-addr", "a:1", "last-leader-id", server("a"))
		if n := lines(); n != 1 {
			t.Errorf("%d lines of a leader that was lost, want 1", n)
		}
		for range 50 {
			log.Error("failed to heartbeat to", "peer", "b")
			log.With("peer", "b").Warn("failed to contact")
			<-time.After(time.Second)
		}
		// Fifty seconds, two messages, one each in ten.
		if n := lines(); n != 10 {
			t.Errorf("%d lines, want 10", n)
		}
		all := calm.New(hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: &out}))
		for range 5 {
			all.Debug("votes needed")
		}
		if n := lines(); n != 5 {
			t.Errorf("%d lines at level debug, want all 5", n)
		}
	})
}
