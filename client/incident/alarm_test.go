package incident

import (
	"testing"
	"time"

	"github.com/quorlease/quorlease/client/failopen"
)

// step is one signal at a time.
type step struct {
	at     time.Duration
	signal failopen.Signal
	change failopen.Change
	want   Tell
}

func TestG8Alarm(t *testing.T) {
	const ms = time.Millisecond
	for name, steps := range map[string][]step{
		"G8_a_lost_quorum_is_told_once_and_resolved_once": {
			{0, failopen.NoQuorum, failopen.None, Nothing},
			{50 * ms, failopen.NoQuorum, failopen.Started, Nothing},
			{200 * ms, failopen.Slow, failopen.None, Nothing},
			{410 * ms, failopen.NoQuorum, failopen.None, Beginning},
			{900 * ms, failopen.Unreachable, failopen.None, Nothing},
			{9000 * ms, failopen.Answered, failopen.None, Nothing},
			{9100 * ms, failopen.Answered, failopen.Ended, End},
		},
		"G8_a_node_that_misses_its_peers_for_a_moment_is_no_loss": {
			{0, failopen.NoQuorum, failopen.Started, Nothing},
			{300 * ms, failopen.NoQuorum, failopen.None, Nothing},
			{350 * ms, failopen.NoLeader, failopen.None, Nothing},
			{600 * ms, failopen.NoQuorum, failopen.None, Nothing},
			{800 * ms, failopen.Answered, failopen.Ended, Nothing},
		},
		"G8_slow_for_as_long_as_an_election_is_not_told_and_longer_is": {
			{0, failopen.Slow, failopen.Started, Nothing},
			{2900 * ms, failopen.Slow, failopen.None, Nothing},
			{3000 * ms, failopen.Slow, failopen.None, Beginning},
			{4000 * ms, failopen.Answered, failopen.Ended, End},
			{5000 * ms, failopen.Slow, failopen.Started, Nothing},
			{6000 * ms, failopen.Answered, failopen.Ended, Nothing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var a Alarm
			began := time.Date(2026, 10, 22, 8, 30, 0, 0, time.UTC)
			for _, s := range steps {
				if got := a.Observe(began.Add(s.at), s.signal, s.change); got != s.want {
					t.Errorf("after %s, %s, %s: told %d, want %d", s.at, s.signal, s.change, got, s.want)
				}
			}
		})
	}
}
