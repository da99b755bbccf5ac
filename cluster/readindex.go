package cluster

import (
	"context"
	"fmt"

	peerv1 "github.com/quorlease/quorlease/api/quorlease/peer/v1"
	"github.com/quorlease/quorlease/cluster/outcome"
	"github.com/quorlease/quorlease/cluster/queue"
	"github.com/quorlease/quorlease/cluster/usage"
	"github.com/quorlease/quorlease/cluster/waiting"
	"github.com/quorlease/quorlease/fsm"
	"github.com/quorlease/quorlease/fsm/bucket"
)

// View calls read with the state machine and the authority time to read with.
// The machine must not be kept or changed; entries are not applied meanwhile,
// so read has to be short.
//
// With stale false it first asks the leader to confirm that it leads, and waits
// until this node has applied what was committed at that moment: the read is as
// fresh as the call. With stale true it reads what is here, at once, also
// without a quorum. It waits MaxWait at most. Errors: ErrNoLeader, ErrNoQuorum,
// ErrClosed, ctx's.
func (n *Node) View(ctx context.Context, stale bool, read func(*fsm.Machine, bucket.Instant)) error {
	if !stale {
		ctx, cancel := context.WithTimeout(ctx, n.config.MaxWait)
		defer cancel()
		index, err := n.readIndex(ctx)
		if err != nil {
			return err
		}
		if err := n.fsm.reached.Wait(ctx, index); err != nil {
			return fmt.Errorf("wait for entry %d: %w", index, err)
		}
	}
	n.view(read)
	return nil
}

// view reads what is here, at once.
func (n *Node) view(read func(*fsm.Machine, bucket.Instant)) {
	n.fsm.view(func(m *fsm.Machine) { read(m, n.fsm.now(m)) })
}

// Revision is that of the limits which this node has applied, 0 before the
// first. It waits for nothing.
func (n *Node) Revision() uint64 { return n.fsm.revision.Load() }

// Queues shows what waits at a key of a limit, by class. The queue is the leader's
// memory: another node asks it, and knows of none where it gets no answer.
func (n *Node) Queues(ctx context.Context, limit, key string) []queue.ClassState {
	_, address := n.otherLeader()
	if n.Leads() || address == "" {
		return n.waiting.State(limit, key)
	}
	client, err := n.peers.Client(address)
	if err != nil {
		return nil
	}
	return waiting.Asked(ctx, client, limit, key)
}

// Usage is what the answers of all nodes granted and denied, as far as they say.
func (n *Node) Usage(ctx context.Context, q usage.Query) usage.Answer {
	var others []usage.Node
	for _, m := range n.roster.Applied() {
		if m.RaftID != string(n.id) {
			others = append(others, usage.Node{Name: m.Name, Address: m.Address})
		}
	}
	return n.usage.Ask(ctx, q, others, n.peers.Client)
}

// readIndex asks the leader, which may be this node.
func (n *Node) readIndex(ctx context.Context) (uint64, error) {
	if n.proposer.term() != 0 {
		index, err := n.reads.Confirm(ctx)
		if err != nil {
			return 0, n.readFailure(ctx, err)
		}
		return index, nil
	}
	address, id := n.raft.LeaderWithID()
	if id == "" || id == n.id {
		return 0, n.leaderless()
	}
	client, err := n.peers.Client(string(address))
	if err != nil {
		return 0, n.readFailure(ctx, err)
	}
	response, err := client.ReadIndex(ctx, &peerv1.ReadIndexRequest{})
	if err != nil {
		return 0, n.readFailure(ctx, err)
	}
	if response.GetFailure() != nil {
		return 0, n.readFailure(ctx, outcome.ErrorOf(response.GetFailure()))
	}
	return response.GetIndex(), nil
}

// verifyLeads asks a majority whether this node leads in term. The leadership may have
// been lost and won again with nobody here having noticed.
func (n *Node) verifyLeads(term uint64) error {
	if err := n.raft.VerifyLeader().Error(); err != nil {
		return err
	}
	if now := n.raft.CurrentTerm(); now != term {
		return fmt.Errorf("leads in term %d, no longer in term %d", now, term)
	}
	return nil
}

// readFailure names why a read could not be confirmed. A read changes nothing,
// so its outcome is never unknown.
func (n *Node) readFailure(ctx context.Context, cause error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if MayHaveHappened(cause) {
		return fmt.Errorf("%w: %s", n.leaderless(), cause.Error())
	}
	return fmt.Errorf("%w: %w", n.leaderless(), cause)
}
