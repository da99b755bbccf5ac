package cluster

import (
	"context"

	"github.com/quorlease/quorlease/cluster/crash"
	"github.com/quorlease/quorlease/cluster/wire"
)

// newCrashWatch makes what notices that the process of the leader has ended.
func (n *Node) newCrashWatch() *crash.Watch {
	return crash.New(crash.Config{
		Raft: func() crash.Raft { return n.raft }, Self: func() string { return string(n.id) },
		Voters: func() (voters []crash.Voter) {
			for _, m := range n.roster.Applied() {
				if m.Voter {
					voters = append(voters, crash.Voter{ID: m.RaftID, Address: m.Address})
				}
			}
			return voters
		},
		Dial: func(ctx context.Context, address string) error {
			conn, _, err := n.dialer.Dial(ctx, wire.GRPC, address)
			if err == nil {
				err = conn.Close()
			}
			return err
		},
		Last: func(ctx context.Context, address string) (uint64, error) {
			info, err := n.ask(ctx, address, n.info())
			return info.GetLastIndex(), err
		},
		Silence: raftConfig(n.config, "", nil).LeaderLeaseTimeout, Logger: n.logger.Named("crash"),
	})
}
