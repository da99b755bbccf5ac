package cluster

import "testing"

func TestR8TimersScaleTogether(t *testing.T) {
	t.Parallel()
	for _, multiplier := range []int{1, 4, 20} {
		c := DefaultConfig()
		c.RaftMultiplier = multiplier
		rc := raftConfig(c, "a.00000000", nil)
		if rc.HeartbeatTimeout != rc.ElectionTimeout || rc.LeaderLeaseTimeout*2 != rc.HeartbeatTimeout ||
			rc.HeartbeatTimeout.Milliseconds() != int64(500*multiplier) {
			t.Errorf("multiplier %d: %s, %s, %s", multiplier, rc.HeartbeatTimeout, rc.ElectionTimeout, rc.LeaderLeaseTimeout)
		}
		// R18, R28, R29, R33, R9.
		if rc.RestoreCommittedLogs || rc.MaxAppendEntries > 1024 || rc.BatchApplyCh || !rc.ShutdownOnRemove ||
			rc.NotifyCh != nil || rc.PreVoteDisabled {
			t.Errorf("%+v", rc)
		}
	}
}
